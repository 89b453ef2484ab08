#include "node/node_config.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "bson/value.h"
#include "replication/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPTION_MAX = 12,
    MEMBER_ID_MAX = 1000000,
    MAX_DATA_GIB = 64 * 1024, /* half of what an x86-64 process can map */
};

static size_t list_options(struct node_config *config, struct option out[OPTION_MAX])
{
    const struct option options[] = {
        {"dbpath", OPTION_STR, &config->dbpath, 0, 0, "DIR", "directory of this member's data (required)"},
        {"port", OPTION_INT, &config->port, 1, 65535, "PORT",
         "where routers and other daemons connect to (default: as prepared)"},
        {"bind", OPTION_STR, &config->bind, 0, 0, "ADDRESS", "address to listen on (default 127.0.0.1)"},
        {"raft-port", OPTION_INT, &config->raft_port, 1, 65535, "PORT",
         "port of the set's own traffic, with --init (default: port + 1000)"},
        {"set", OPTION_STR, &config->set, 0, 0, "NAME", "name of the set, with --init"},
        {"id", OPTION_INT, &config->id, 1, MEMBER_ID_MAX, "N", "number of this member, with --init (default 1)"},
        {"members", OPTION_STR, &config->members, 0, 0, "LIST",
         "all first members as N@HOST:PORT,..., with --init (default: this one alone)"},
        {"init", OPTION_FLAG, &config->init, 0, 0, NULL,
         "prepare an empty dbpath as a first member of a new set, and exit"},
        {"max-data-gib", OPTION_INT, &config->max_data_gib, 1, MAX_DATA_GIB, "N",
         "the most that the data file may become (default 1024)"},
        {"log-level", OPTION_STR, &config->log_level, 0, 0, "LEVEL", "debug, info, warn or error (default info)"},
        {"enable-test-commands", OPTION_FLAG, &config->test_commands, 0, 0, NULL,
         "allow commands and faults that only tests need"},
        {"faults", OPTION_STR, &config->faults, 0, 0, "SPEC",
         "fault points as NAME:N:ACTION,..., with --enable-test-commands"},
    };
    _Static_assert(sizeof options / sizeof options[0] == OPTION_MAX, "OPTION_MAX counts them");
    memcpy(out, options, sizeof options);
    return OPTION_MAX;
}

enum options_result node_config_parse(struct node_config *config, const char *program, const char *summary, int argc,
                                      char **argv, struct err *err)
{
    struct option options[OPTION_MAX];
    struct options_usage usage = {.program = program, .summary = summary};
    *config = (struct node_config){0};
    enum options_result result = options_parse(&usage, options, list_options(config, options), argc, argv, err);
    if (result != OPTIONS_OK)
        return result;
    if (config->dbpath == NULL || config->dbpath[0] == '\0') {
        err_set(err, ERR_BadValue, "--dbpath is required");
        return OPTIONS_FAILED;
    }
    if (config->faults != NULL && !config->test_commands) {
        err_set(err, ERR_BadValue, "--faults needs --enable-test-commands");
        return OPTIONS_FAILED;
    }
    bool describes_set = config->set != NULL || config->members != NULL || config->id != 0 || config->raft_port != 0;
    if (describes_set && !config->init) {
        err_set(err, ERR_BadValue, "--set, --id, --members and --raft-port go with --init; a member remembers them");
        return OPTIONS_FAILED;
    }
    return OPTIONS_OK;
}

void node_config_deinit(struct node_config *config)
{
    struct option options[OPTION_MAX];
    options_deinit(options, list_options(config, options));
}

static bool add_member(struct node_config *config, uint64_t id, const char *address, struct err *err)
{
    struct address parsed;
    if (id < 1 || id > MEMBER_ID_MAX)
        return err_set(err, ERR_BadValue, "a member's number is from 1 to %d, not %lld", MEMBER_ID_MAX, (long long)id);
    if (config->member_count == REPLICA_MEMBERS_MAX)
        return err_set(err, ERR_BadValue, "at most %d members", REPLICA_MEMBERS_MAX);
    for (size_t i = 0; i < config->member_count; i++) {
        if (config->member[i].id == id)
            return err_set(err, ERR_BadValue, "member %llu is listed twice", (unsigned long long)id);
    }
    char *copy = config->addresses[config->member_count];
    if (!address_parse(address, &parsed, err))
        return false;
    if (!address_format(&parsed, copy, REPLICA_ADDRESS_MAX))
        return err_set(err, ERR_BadValue, "the address '%s' is too long", address);
    config->member[config->member_count++] = (struct replica_member){.id = id, .address = copy};
    if (id == config->member_id)
        config->own_address = copy;
    return true;
}

/* "N@HOST:PORT" */
static bool parse_member(struct node_config *config, const char *text, struct err *err)
{
    char *end;
    unsigned long long id = strtoull(text, &end, 10);
    if (end == text || *end != '@' || id == 0)
        return err_set(err, ERR_BadValue, "--members: '%s' is not N@HOST:PORT", text);
    return add_member(config, id, end + 1, err);
}

static bool parse_members(struct node_config *config, struct err *err)
{
    char *list = mem_copy_str(config->members);
    char *rest = list;
    bool ok = true;
    for (char *one; ok && (one = strsep(&rest, ",")) != NULL;)
        ok = parse_member(config, one, err);
    mem_free(list);
    return ok;
}

bool node_config_from_options(struct node_config *config, int default_port, struct err *err)
{
    const char *set = config->set == NULL ? "" : config->set;
    if (strlen(set) >= sizeof config->set_name)
        return err_set(err, ERR_BadValue, "--set: the name is longer than %zu bytes", sizeof config->set_name - 1);
    memcpy(config->set_name, set, strlen(set) + 1);
    config->member_id = config->id == 0 ? 1 : (uint64_t)config->id;
    if (config->members != NULL) {
        if (!parse_members(config, err))
            return false;
    } else {
        int64_t port = config->port == 0 ? default_port : config->port;
        int64_t raft_port = config->raft_port == 0 ? port + ADDRESS_RAFT_PORT_OFFSET : config->raft_port;
        char address[64];
        snprintf(address, sizeof address, "127.0.0.1:%lld:%lld", (long long)port, (long long)raft_port);
        if (!add_member(config, config->member_id, address, err))
            return false;
    }
    return config->own_address != NULL || err_set(err, ERR_BadValue, "--members doesn't list this member, number %llu",
                                                  (unsigned long long)config->member_id);
}

static char *json_path(const struct node_config *config)
{
    return mem_printf("%s/node.json", config->dbpath);
}

bool node_config_exists(const struct node_config *config)
{
    char *path = json_path(config);
    bool exists = access(path, F_OK) == 0;
    mem_free(path);
    return exists;
}

bool node_config_save(const struct node_config *config, const char *role, struct err *err)
{
    bson_t doc = BSON_INITIALIZER;
    bson_t members;
    BSON_APPEND_INT32(&doc, "formatVersion", NODE_FORMAT_VERSION);
    BSON_APPEND_UTF8(&doc, "role", role);
    BSON_APPEND_UTF8(&doc, "set", config->set_name);
    BSON_APPEND_INT32(&doc, "id", (int32_t)config->member_id);
    BSON_APPEND_ARRAY_BEGIN(&doc, "members", &members);
    for (size_t i = 0; i < config->member_count; i++) {
        bson_t member;
        const char *key;
        char digits[16];
        bson_uint32_to_string((uint32_t)i, &key, digits, sizeof digits);
        BSON_APPEND_DOCUMENT_BEGIN(&members, key, &member);
        BSON_APPEND_INT32(&member, "id", (int32_t)config->member[i].id);
        BSON_APPEND_UTF8(&member, "address", config->member[i].address);
        bson_append_document_end(&members, &member);
    }
    bson_append_array_end(&doc, &members);
    size_t len;
    char *json = bson_as_relaxed_extended_json(&doc, &len);
    char *path = json_path(config);
    bool ok = file_replace(path, json, len, err);
    mem_free(path);
    bson_free(json);
    bson_destroy(&doc);
    return ok;
}

static bool load_members(struct node_config *config, struct bdoc members, struct err *err)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, members);
    while (biter_next(&iter, &elem)) {
        struct bval id;
        struct bval address;
        int64_t number;
        uint32_t len;
        bool ok = elem.val.type == BT_DOCUMENT && bdoc_find(bval_doc(&elem.val), "id", &id) &&
                  bval_to_i64(&id, &number) && bdoc_find(bval_doc(&elem.val), "address", &address) &&
                  address.type == BT_STRING;
        if (!ok)
            return err_set(err, ERR_FailedToParse, "a member is not {id, address}");
        if (!add_member(config, (uint64_t)number, bval_str(&address, &len), err))
            return false;
    }
    return config->own_address != NULL || err_set(err, ERR_FailedToParse, "this member is not among the members");
}

static bool load_doc(struct node_config *config, struct bdoc doc, const char *role, struct err *err)
{
    struct bval val;
    int64_t number = 0;
    uint32_t len;
    if (!bdoc_find(doc, "formatVersion", &val) || !bval_to_i64(&val, &number))
        return err_set(err, ERR_FailedToParse, "no formatVersion");
    if (number < 1)
        return err_set(err, ERR_FailedToParse, "there is no formatVersion %lld", (long long)number);
    if (number > NODE_FORMAT_VERSION)
        return err_set(err, ERR_UnsupportedFormat,
                       "the data has format version %lld, this program knows %d: use a newer one", (long long)number,
                       NODE_FORMAT_VERSION);
    if (!bdoc_find(doc, "role", &val) || !bval_is_str(&val, role))
        return err_set(err, ERR_BadValue, "the data belongs to another program than %s", role);
    if (!bdoc_find(doc, "set", &val) || val.type != BT_STRING ||
        strlen(bval_str(&val, &len)) >= sizeof config->set_name)
        return err_set(err, ERR_FailedToParse, "no set name");
    memcpy(config->set_name, bval_str(&val, &len), strlen(bval_str(&val, &len)) + 1);
    if (!bdoc_find(doc, "id", &val) || !bval_to_i64(&val, &number))
        return err_set(err, ERR_FailedToParse, "no id");
    config->member_id = (uint64_t)number;
    if (!bdoc_find(doc, "members", &val) || val.type != BT_ARRAY)
        return err_set(err, ERR_FailedToParse, "no members");
    return load_members(config, bval_doc(&val), err);
}

bool node_config_load(struct node_config *config, const char *role, struct err *err)
{
    struct buf json = BUF_INIT;
    bson_error_t error;
    char *path = json_path(config);
    bson_t *doc = NULL;
    bool ok = file_read(path, NODE_JSON_MAX_BYTES, &json, err);
    if (!ok && !node_config_exists(config))
        err_set(err, ERR_NotYetInitialized, "%s holds no member: prepare it with --init first", config->dbpath);
    if (ok) {
        doc = bson_new_from_json(json.data, (ssize_t)json.len, &error);
        ok = doc != NULL ? load_doc(config, bdoc_of(doc), role, err)
                         : err_set(err, ERR_FailedToParse, "not JSON: %s", error.message);
        if (!ok)
            err_prefix(err, "%s", path);
    }
    if (doc != NULL)
        bson_destroy(doc);
    buf_deinit(&json);
    mem_free(path);
    return ok;
}
