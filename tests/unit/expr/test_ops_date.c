#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/eval.h"

#define DATE(ms) "{'$date': {'$numberLong': '" ms "'}}"

/* 2024-03-31T00:30:00Z: Berlin goes from +01:00 to +02:00 at 01:00Z. */
#define SPRING "1711845000000"

static void date_parts_in_time_zones(void **state)
{
    static const struct eval_case cases[] = {
        {"{'$hour': {'date': '$d', 'timezone': 'Europe/Berlin'}}", "{'d': " DATE(SPRING) "}", "{'v': 1}"},
        {"{'$hour': {'date': {'$add': ['$d', 3600000]}, 'timezone': 'Europe/Berlin'}}", "{'d': " DATE(SPRING) "}",
         "{'v': 3}"},
        {"{'$minute': {'date': '$d', 'timezone': '+05:45'}}", "{'d': " DATE(SPRING) "}", "{'v': 15}"},
        {"{'$dayOfWeek': '$d'}", "{'d': " DATE(SPRING) "}", "{'v': 1}"},
        {"{'$isoWeek': ['$d']}", "{'d': " DATE(SPRING) "}", "{'v': 13}"},
        {"{'$isoWeekYear': '$d'}", "{'d': " DATE(SPRING) "}", "{'v': {'$numberLong': '2024'}}"},
        {"{'$year': null}", "{}", "{'v': null}"},
        {"{'$dateToParts': {'date': '$d', 'timezone': 'America/New_York'}}", "{'d': " DATE(SPRING) "}",
         "{'v': {'year': 2024, 'month': 3, 'day': 30, 'hour': 20, 'minute': 30, 'second': 0, 'millisecond': 0}}"},
        {"{'$dateToParts': {'date': '$d', 'iso8601': true}}", "{'d': " DATE(SPRING) "}",
         "{'v': {'isoWeekYear': 2024, 'isoWeek': 13, 'isoDayOfWeek': 7, 'hour': 0, 'minute': 30, 'second': 0, "
         "'millisecond': 0}}"},
        {"{'$dateFromParts': {'year': 2024, 'month': 3, 'day': 31, 'hour': 3, 'timezone': 'Europe/Berlin'}}", "{}",
         "{'v': " DATE("1711846800000") "}"},
        {"{'$dateFromParts': {'year': 2024, 'month': 14}}", "{}", "{'v': " DATE("1738368000000") "}"},
        {"{'$dateFromParts': {'isoWeekYear': 2024, 'isoWeek': 1}}", "{}", "{'v': " DATE("1704067200000") "}"},
    };
    (void)state;
    EVAL_CHECK(cases);
}

static void date_texts(void **state)
{
    static const struct eval_case cases[] = {
        {"{'$dateToString': {'date': '$d'}}", "{'d': " DATE(SPRING) "}", "{'v': '2024-03-31T00:30:00.000Z'}"},
        {"{'$dateToString': {'date': '$d', 'timezone': 'Europe/Berlin'}}", "{'d': " DATE(SPRING) "}",
         "{'v': '2024-03-31T01:30:00.000'}"},
        {"{'$dateToString': {'date': '$d', 'format': '%Y %m %d %H %M %S %L %j %w %u %U %V %G %z %Z %b %B %%', "
         "'timezone': '-03:30'}}",
         "{'d': " DATE(SPRING) "}", "{'v': '2024 03 30 21 00 00 000 090 7 6 12 13 2024 -0330 -210 Mar March %'}"},
        {"{'$dateToString': {'date': null, 'onNull': 'none'}}", "{}", "{'v': 'none'}"},
        {"{'$dateFromString': {'dateString': '2024-03-31T02:30:00+02:00'}}", "{}", "{'v': " DATE(SPRING) "}"},
        {"{'$dateFromString': {'dateString': '2024-03-31 01:30', 'timezone': 'Europe/Berlin'}}", "{}",
         "{'v': " DATE(SPRING) "}"},
        {"{'$dateFromString': {'dateString': 'Sun, 31 Mar 2024 00:30:00 GMT'}}", "{}", "{'v': " DATE(SPRING) "}"},
        {"{'$dateFromString': {'dateString': 'March 31, 2024 12:30 am'}}", "{}", "{'v': " DATE(SPRING) "}"},
        {"{'$dateFromString': {'dateString': '03/31/2024 00:30'}}", "{}", "{'v': " DATE(SPRING) "}"},
        {"{'$dateFromString': {'dateString': '20240331T003000Z'}}", "{}", "{'v': " DATE(SPRING) "}"},
        {"{'$dateFromString': {'dateString': '31.03.2024 00h30', 'format': '%d.%m.%Y %Hh%M'}}", "{}",
         "{'v': " DATE(SPRING) "}"},
        {"{'$dateFromString': {'dateString': '2024-091', 'format': '%Y-%j'}}", "{}",
         "{'v': " DATE("1711843200000") "}"},
        {"{'$dateFromString': {'dateString': '2024-13-7', 'format': '%G-%V-%u'}}", "{}",
         "{'v': " DATE("1711843200000") "}"},
        {"{'$dateFromString': {'dateString': 'rubbish', 'onError': 5}}", "{}", "{'v': 5}"},
        {"{'$dateFromString': {'dateString': null, 'onNull': 6}}", "{}", "{'v': 6}"},
    };
    (void)state;
    EVAL_CHECK(cases);
}

static void date_arithmetic_follows_the_calendar(void **state)
{
    static const struct eval_case cases[] = {
        /* 2024-01-31 plus a month is the last day of February. */
        {"{'$dateAdd': {'startDate': '$d', 'unit': 'month', 'amount': 1}}", "{'d': " DATE("1706659200000") "}",
         "{'v': " DATE("1709164800000") "}"},
        {"{'$dateSubtract': {'startDate': '$d', 'unit': 'year', 'amount': 1}}", "{'d': " DATE("1709164800000") "}",
         "{'v': " DATE("1677542400000") "}"},
        /* A day over the change has 23 hours; 24 hours are 24 hours. */
        {"{'$dateAdd': {'startDate': '$d', 'unit': 'day', 'amount': 1, 'timezone': 'Europe/Berlin'}}",
         "{'d': " DATE(SPRING) "}", "{'v': " DATE("1711927800000") "}"},
        {"{'$dateAdd': {'startDate': '$d', 'unit': 'hour', 'amount': 24, 'timezone': 'Europe/Berlin'}}",
         "{'d': " DATE(SPRING) "}", "{'v': " DATE("1711931400000") "}"},
        {"{'$dateDiff': {'startDate': '$d', 'endDate': '$e', 'unit': 'month'}}",
         "{'d': " DATE("1706659200000") ", 'e': " DATE("1706745600000") "}", "{'v': {'$numberLong': '1'}}"},
        {"{'$dateDiff': {'startDate': '$d', 'endDate': '$e', 'unit': 'day'}}",
         "{'d': " DATE("1706745599999") ", 'e': " DATE("1706745600000") "}", "{'v': {'$numberLong': '1'}}"},
        {"{'$dateDiff': {'startDate': '$d', 'endDate': '$e', 'unit': 'week', 'startOfWeek': 'mon'}}",
         "{'d': " DATE("1711843200000") ", 'e': " DATE("1711929600000") "}", "{'v': {'$numberLong': '1'}}"},
        {"{'$dateDiff': {'startDate': '$e', 'endDate': '$d', 'unit': 'hour'}}",
         "{'d': " DATE("0") ", 'e': " DATE("3600000") "}", "{'v': {'$numberLong': '-1'}}"},
        {"{'$dateTrunc': {'date': '$d', 'unit': 'day', 'timezone': 'Europe/Berlin'}}", "{'d': " DATE(SPRING) "}",
         "{'v': " DATE("1711839600000") "}"},
        {"{'$dateTrunc': {'date': '$d', 'unit': 'week'}}", "{'d': " DATE(SPRING) "}",
         "{'v': " DATE("1711843200000") "}"},
        {"{'$dateTrunc': {'date': '$d', 'unit': 'week', 'startOfWeek': 'Monday'}}", "{'d': " DATE(SPRING) "}",
         "{'v': " DATE("1711324800000") "}"},
        {"{'$dateTrunc': {'date': '$d', 'unit': 'quarter'}}", "{'d': " DATE(SPRING) "}",
         "{'v': " DATE("1704067200000") "}"},
        {"{'$dateTrunc': {'date': '$d', 'unit': 'minute', 'binSize': 20}}", "{'d': " DATE(SPRING) "}",
         "{'v': " DATE("1711844400000") "}"},
        {"{'$dateTrunc': {'date': null, 'unit': 'day'}}", "{}", "{'v': null}"},
    };
    (void)state;
    EVAL_CHECK(cases);
}

static void date_malformed_fails_with_code(void **state)
{
    static const struct eval_failure cases[] = {
        {"{'$year': '$s'}", 16006},
        {"{'$year': ['$$NOW', 1]}", 40536},
        {"{'$year': {'date': '$$NOW', 'x': 1}}", 40535},
        {"{'$year': {'timezone': 'UTC'}}", 40539},
        {"{'$year': {'date': '$$NOW', 'timezone': 'Nowhere/At_all'}}", 40485},
        {"{'$year': {'date': '$$NOW', 'timezone': 5}}", 40533},
        {"{'$dateToString': {'format': '%Y'}}", 18628},
        {"{'$dateToString': {'date': '$$NOW', 'x': 1}}", 18534},
        {"{'$dateToString': {'date': '$$NOW', 'format': 5}}", 18533},
        {"{'$dateToString': {'date': '$$NOW', 'format': '%'}}", 18535},
        {"{'$dateToString': {'date': '$$NOW', 'format': '%q'}}", 18536},
        {"{'$dateToString': {'date': '$$NOW', 'timezone': 5}}", 40517},
        {"{'$dateFromString': 5}", 40540},
        {"{'$dateFromString': {}}", 40542},
        {"{'$dateFromString': {'dateString': 'x', 'y': 1}}", 40541},
        {"{'$dateFromString': {'dateString': 'x'}}", 241},
        {"{'$dateFromString': {'dateString': 5}}", 241},
        {"{'$dateFromString': {'dateString': '2024-01-01Z', 'timezone': 'Europe/Berlin'}}", 241},
        {"{'$dateFromString': {'dateString': '2024', 'format': '%Y-%m'}}", 241},
        {"{'$dateFromString': {'dateString': '2024', 'format': '%q'}}", 18536},
        {"{'$dateFromParts': {'month': 1}}", 40516},
        {"{'$dateFromParts': {'year': 2024, 'isoWeek': 1}}", 40489},
        {"{'$dateFromParts': {'isoWeekYear': 2024, 'month': 1}}", 40525},
        {"{'$dateFromParts': {'year': '$s'}}", 40515},
        {"{'$dateFromParts': {'year': 10000}}", 40523},
        {"{'$dateFromParts': {'year': 2024, 'month': 40000}}", 31034},
        {"{'$dateToParts': {'x': 1}}", 40520},
        {"{'$dateToParts': {}}", 40522},
        {"{'$dateToParts': {'date': '$$NOW', 'iso8601': 5}}", 40521},
        {"{'$dateAdd': 5}", 5166400},
        {"{'$dateAdd': {'x': 1}}", 5166401},
        {"{'$dateAdd': {'startDate': '$$NOW', 'unit': 'day'}}", 5166402},
        {"{'$dateAdd': {'startDate': '$s', 'unit': 'day', 'amount': 1}}", 5166403},
        {"{'$dateAdd': {'startDate': '$$NOW', 'unit': 5, 'amount': 1}}", 5166404},
        {"{'$dateAdd': {'startDate': '$$NOW', 'unit': 'day', 'amount': 1.5}}", 5166405},
        {"{'$dateAdd': {'startDate': '$$NOW', 'unit': 'fortnight', 'amount': 1}}", 9},
        {"{'$dateAdd': {'startDate': '$$NOW', 'unit': 'year', 'amount': {'$numberLong': '9223372036854775807'}}}",
         5976500},
        {"{'$dateDiff': {'startDate': '$s', 'endDate': '$$NOW', 'unit': 'day'}}", 5166307},
        {"{'$dateDiff': {'endDate': '$$NOW', 'unit': 'day'}}", 5166303},
        {"{'$dateDiff': {'startDate': '$$NOW', 'endDate': '$$NOW', 'unit': 5}}", 5439013},
        {"{'$dateDiff': {'startDate': '$$NOW', 'endDate': '$$NOW', 'unit': 'week', 'startOfWeek': 'x'}}", 5439016},
        {"{'$dateDiff': {'startDate': '$$NOW', 'endDate': '$$NOW', 'unit': 'week', 'startOfWeek': 5}}", 5439015},
        {"{'$dateTrunc': {'date': '$s', 'unit': 'day'}}", 5439012},
        {"{'$dateTrunc': {'date': '$$NOW', 'unit': 'day', 'binSize': 'x'}}", 5439017},
        {"{'$dateTrunc': {'date': '$$NOW', 'unit': 'day', 'binSize': 0}}", 5439018},
        {"{'$dateTrunc': {'unit': 'day'}}", 5439009},
    };
    (void)state;
    EVAL_CHECK_FAILURES(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(date_parts_in_time_zones),
        cmocka_unit_test(date_texts),
        cmocka_unit_test(date_arithmetic_follows_the_calendar),
        cmocka_unit_test(date_malformed_fails_with_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
