#include "bson/hash.h"

#include "base/check.h"
#include "bson/compare.h"
#include "bson/keyenc.h"

#include <openssl/evp.h>

#include <stdatomic.h>
#include <string.h>

static void add(EVP_MD_CTX *md, const void *data, size_t len)
{
    CHECK(EVP_DigestUpdate(md, data, len) == 1);
}

/* A whole number goes in as an int64; any other one by its exact value. */
static void add_number(EVP_MD_CTX *md, const struct bval *val)
{
    int64_t whole;
    if (bval_to_i64(val, &whole)) {
        add(md, &whole, sizeof whole);
        return;
    }
    struct buf key = BUF_INIT;
    keyenc_append(&key, val, false);
    add(md, key.data, key.len);
    buf_deinit(&key);
}

static void add_value(EVP_MD_CTX *md, const char *name, uint32_t name_size, const struct bval *val);

static void add_fields(EVP_MD_CTX *md, struct bdoc doc)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem))
        add_value(md, elem.key, elem.key_len + 1, &elem.val);
    static const int32_t end = 0; /* the class of the end-of-document element */
    add(md, &end, sizeof end);
}

/* Depth is bounded by that of a validated document. */
static void add_value(EVP_MD_CTX *md, const char *name, uint32_t name_size, const struct bval *val)
{
    int32_t class = (int32_t)bval_class(val->type);
    add(md, &class, sizeof class);
    if (name_size > 0)
        add(md, name, name_size);
    switch (bval_class(val->type)) {
    case BCLASS_NUMBER:
        add_number(md, val);
        break;
    case BCLASS_DOCUMENT:
    case BCLASS_ARRAY:
        add_fields(md, bval_doc(val));
        break;
    case BCLASS_CODE_WITH_SCOPE: {
        uint32_t code_size = load_le32(val->data + 4);
        add(md, val->data + 8, code_size);
        add_fields(md, (struct bdoc){.data = val->data + 8 + code_size, .len = val->len - 8 - code_size});
        break;
    }
    default:
        if (val->len > 0)
            add(md, val->data, val->len);
    }
}

/* libcrypto looks an algorithm up by name on each use of EVP_md5(), which costs more than hashing a key: it is fetched
 * once and never freed. */
static const EVP_MD *md5(void)
{
    static _Atomic(EVP_MD *) fetched;
    EVP_MD *md = atomic_load(&fetched);
    if (md != NULL)
        return md;
    EVP_MD *mine = EVP_MD_fetch(NULL, "MD5", NULL);
    CHECK(mine != NULL);
    if (atomic_compare_exchange_strong(&fetched, &md, mine))
        return mine;
    EVP_MD_free(mine); /* another thread was first */
    return md;
}

int64_t bval_hash_seeded(const struct bval *val, int32_t seed)
{
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    unsigned char digest[EVP_MAX_MD_SIZE];
    CHECK(md != NULL && EVP_DigestInit_ex2(md, md5(), NULL) == 1);
    add(md, &seed, sizeof seed);
    add_value(md, NULL, 0, val);
    CHECK(EVP_DigestFinal_ex(md, digest, NULL) == 1);
    EVP_MD_CTX_free(md);
    return (int64_t)load_le64(digest);
}

int64_t bval_hash(const struct bval *val)
{
    return bval_hash_seeded(val, 0);
}
