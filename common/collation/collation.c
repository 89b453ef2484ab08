#include "collation/collation.h"

#include "base/check.h"
#include "base/map.h"
#include "base/mem.h"
#include "bson/keyenc.h"
#include "collation/spec.h"

#include <unicode/ustring.h>

#include <pthread.h>
#include <string.h>

enum {
    RECENT_SPEC_MAX_BYTES = 512, /* a longer specification is read anew each time */
    UNITS_ON_STACK = 512,        /* of UTF-16: longer strings go over the heap */
    KEY_BYTES_PER_UNIT = 4,      /* first guess of a sort key's size */
    FIRST_BYTE_OF_ALL = 0x01,
    FIRST_BYTE_BEYOND_ASCII = 0x80,
    FIRST_BYTE_OF_MARKS = 0xcc,        /* U+0300 */
    FIRST_BYTE_OF_OTHER_DIGITS = 0xd9, /* U+0660 */
};

struct collation {
    uint32_t refs; /* under lock */
    UCollator *collator;
    uint8_t fast_below; /* strings with a byte from here on compare by their keys; 0: none do */
    struct bval_order order;
    struct collation_spec spec;
    char name[COLLATION_NAME_MAX]; /* its key in `collations` */
};

/* A specification as it came, and what it means; holds a reference. */
struct recent {
    struct collation *collation; /* NULL: the slot is free */
    uint32_t len;
    uint8_t spec[RECENT_SPEC_MAX_BYTES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map collations;                     /* name -> struct collation, all there are; under lock */
static struct recent recents[COLLATION_IDLE_MAX]; /* by hash of the specification; under lock */
static const char version_text[] = U_ICU_VERSION;

const char *collation_version(void)
{
    return version_text;
}

/* --- the order ---------------------------------------------------------------------------------------------------- */

/* A string as UTF-16. What is no UTF-8 becomes U+FFFD, as ucol_strcollUTF8 takes it. */
struct utf16 {
    UChar *units; /* on_stack or of the heap */
    int32_t count;
    UChar on_stack[UNITS_ON_STACK];
};

static void utf16_init(struct utf16 *out, const char *text, uint32_t len)
{
    UErrorCode status = U_ZERO_ERROR;
    out->units = len <= UNITS_ON_STACK ? out->on_stack : mem_alloc_array(len, sizeof *out->units);
    out->count = 0;
    u_strFromUTF8WithSub(out->units, (int32_t)(len <= UNITS_ON_STACK ? UNITS_ON_STACK : len), &out->count, text,
                         (int32_t)len, 0xfffd, NULL, &status);
    CHECK(U_SUCCESS(status)); /* it has room for a unit each byte */
}

static void utf16_deinit(struct utf16 *text)
{
    if (text->units != text->on_stack)
        mem_free(text->units);
}

static void append_key(const void *arg, const char *text, uint32_t len, struct buf *to)
{
    const struct collation *collation = arg;
    struct utf16 text16;
    utf16_init(&text16, text, len);
    size_t room = (size_t)text16.count * KEY_BYTES_PER_UNIT + 16;
    for (;;) {
        uint8_t *out = buf_reserve(to, room);
        int32_t size = ucol_getSortKey(collation->collator, text16.units, text16.count, out, (int32_t)room);
        CHECK(size > 0);
        if ((size_t)size <= room) {
            to->len += (size_t)size - 1; /* without the NUL that ends it */
            break;
        }
        room = (size_t)size;
    }
    utf16_deinit(&text16);
}

/* No byte is `limit` or above. */
static bool is_below(const char *text, uint32_t len, uint8_t limit)
{
    bool above = false;
    for (uint32_t i = 0; i < len; i++)
        above |= (uint8_t)text[i] >= limit;
    return !above;
}

static int compare_by_keys(const struct collation *collation, const char *a, uint32_t a_len, const char *b,
                           uint32_t b_len)
{
    struct buf keys = BUF_INIT;
    append_key(collation, a, a_len, &keys);
    size_t middle = keys.len;
    append_key(collation, b, b_len, &keys);
    int sign = keyenc_compare(keys.data, middle, keys.data + middle, keys.len - middle);
    buf_deinit(&keys);
    return sign;
}

/* ICU's comparison skips a common beginning, and there it differs from what its sort keys say in rare texts: strength 5
 * takes marks as they stand, where keys have them in canonical order; shifted punctuation and backwards accents forget
 * what stood before an ignorable character with a mark behind; numericOrdering, in a locale that changes the root's
 * order, doesn't see that a digit follows, unless it is an ASCII one. Then the keys decide. `fast_below` keeps text
 * without such characters out of this. */
static int compare_strings(const void *arg, const char *a, uint32_t a_len, const char *b, uint32_t b_len)
{
    const struct collation *collation = arg;
    UErrorCode status = U_ZERO_ERROR;
    uint8_t limit = collation->fast_below;
    if (limit != 0 && !(is_below(a, a_len, limit) && is_below(b, b_len, limit)))
        return compare_by_keys(collation, a, a_len, b, b_len);
    UCollationResult result = ucol_strcollUTF8(collation->collator, a, (int32_t)a_len, b, (int32_t)b_len, &status);
    CHECK(U_SUCCESS(status)); /* it fails for lack of memory only */
    return (int)result;
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static void free_collation(struct collation *collation)
{
    ucol_close(collation->collator);
    mem_free(collation);
}

static struct collation *unref_locked(struct collation *collation)
{
    if (collation == NULL || --collation->refs > 0)
        return NULL;
    map_remove(&collations, collation->name, strlen(collation->name));
    return collation;
}

struct collation *collation_ref(struct collation *collation)
{
    if (collation == NULL)
        return NULL;
    pthread_mutex_lock(&lock);
    collation->refs++;
    pthread_mutex_unlock(&lock);
    return collation;
}

void collation_unref(struct collation *collation)
{
    if (collation == NULL)
        return;
    pthread_mutex_lock(&lock);
    struct collation *unused = unref_locked(collation);
    pthread_mutex_unlock(&lock);
    if (unused != NULL)
        free_collation(unused);
}

static void unref_cb(void *arg)
{
    collation_unref(arg);
}

void collation_keep(struct collation *collation, struct arena *arena)
{
    if (collation != NULL)
        arena_on_deinit(arena, unref_cb, collation_ref(collation));
}

static struct recent *recent_slot(struct bdoc spec)
{
    return &recents[hash_bytes(spec.data, spec.len) % COLLATION_IDLE_MAX];
}

/* A reference of the caller's, or NULL. */
static struct collation *find_recent(struct bdoc spec)
{
    struct collation *found = NULL;
    if (spec.len > RECENT_SPEC_MAX_BYTES)
        return NULL;
    const struct recent *recent = recent_slot(spec);
    pthread_mutex_lock(&lock);
    if (recent->collation != NULL && recent->len == spec.len && memcmp(recent->spec, spec.data, spec.len) == 0) {
        found = recent->collation;
        found->refs++;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void remember(struct bdoc spec, struct collation *collation)
{
    if (spec.len > RECENT_SPEC_MAX_BYTES)
        return;
    struct recent *recent = recent_slot(spec);
    pthread_mutex_lock(&lock);
    struct collation *unused = unref_locked(recent->collation);
    collation->refs++;
    recent->collation = collation;
    recent->len = spec.len;
    memcpy(recent->spec, spec.data, spec.len);
    pthread_mutex_unlock(&lock);
    if (unused != NULL)
        free_collation(unused);
}

/* Makes `fresh` known, or frees it when there is an equal one; returns a reference of the caller's. */
static struct collation *intern(struct collation *fresh)
{
    pthread_mutex_lock(&lock);
    struct collation *known = map_get(&collations, fresh->name, strlen(fresh->name));
    if (known != NULL)
        known->refs++;
    else
        map_put(&collations, fresh->name, strlen(fresh->name), fresh);
    pthread_mutex_unlock(&lock);
    if (known == NULL)
        return fresh;
    free_collation(fresh);
    return known;
}

/* See compare_strings. */
static uint8_t first_doubtful_byte(const struct collation_spec *spec)
{
    if (spec->values[OPTION_STRENGTH] == UCOL_IDENTICAL)
        return FIRST_BYTE_BEYOND_ASCII;
    if (spec->values[OPTION_ALTERNATE] == UCOL_SHIFTED || spec->values[OPTION_BACKWARDS] == UCOL_ON)
        return strchr(spec->locale, '@') == NULL ? FIRST_BYTE_OF_MARKS : FIRST_BYTE_OF_ALL; /* may make "'" a mark */
    return spec->values[OPTION_NUMERIC_ORDERING] == UCOL_ON ? FIRST_BYTE_OF_OTHER_DIGITS : 0;
}

static struct collation *new_collation(const struct collation_spec *spec, UCollator *collator)
{
    struct collation *collation = mem_alloc(sizeof *collation);
    collation->refs = 1;
    collation->collator = collator;
    collation->spec = *spec;
    collation->fast_below = first_doubtful_byte(spec);
    collation_spec_name(spec, collation->name);
    collation->order = (struct bval_order){
        .compare_strings = compare_strings, .append_key = append_key, .arg = collation, .name = collation->name};
    return collation;
}

static bool open_spec(struct bdoc doc, bool check_version, struct collation **out, struct err *err)
{
    struct collation_spec spec;
    UCollator *collator;
    *out = NULL;
    if (!collation_spec_read(doc, &spec, err))
        return false;
    if (check_version && spec.version[0] != 0 && strcmp(spec.version, version_text) != 0)
        return err_set(err, ERR_IncompatibleCollationVersion,
                       "Requested collation version %s but the only available collator version was %s", spec.version,
                       version_text);
    if (collation_spec_is_simple(&spec))
        return true;
    if (!collation_spec_open(&spec, &collator, err))
        return false;
    *out = intern(new_collation(&spec, collator));
    return true;
}

bool collation_open(struct bdoc spec, struct collation **out, struct err *err)
{
    *out = find_recent(spec);
    if (*out != NULL)
        return true;
    if (!open_spec(spec, true, out, err))
        return false;
    if (*out != NULL)
        remember(spec, *out);
    return true;
}

bool collation_open_stored(struct bdoc spec, struct collation **out, struct err *err)
{
    struct err first;
    if (collation_open(spec, out, &first))
        return true;
    if (first.code == ERR_IncompatibleCollationVersion)
        return open_spec(spec, false, out, err);
    if (err != NULL)
        *err = first;
    return false;
}

/* --- what others see ---------------------------------------------------------------------------------------------- */

const struct bval_order *collation_order(const struct collation *collation)
{
    return collation == NULL ? NULL : &collation->order;
}

void collation_normal_spec(const struct collation *collation, bson_t *out)
{
    if (collation == NULL)
        BSON_APPEND_UTF8(out, "locale", "simple");
    else
        collation_spec_append(&collation->spec, out);
}
