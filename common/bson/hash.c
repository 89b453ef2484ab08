#include "bson/hash.h"

#include "base/check.h"
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

/* In a collation the sort key stands for the string. */
static void add_ordered_text(EVP_MD_CTX *md, const struct bval *val, const struct bval_order *order)
{
    uint32_t len;
    const char *text = bval_str(val, &len);
    struct buf key = BUF_INIT;
    order->append_key(order->arg, text, len, &key);
    uint32_t key_len = (uint32_t)key.len;
    add(md, &key_len, sizeof key_len);
    add(md, key.data, key.len);
    buf_deinit(&key);
}

static void add_value(EVP_MD_CTX *md, const struct belem *elem, const struct bval_order *order);

static void add_fields(EVP_MD_CTX *md, struct bdoc doc, const struct bval_order *order)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem))
        add_value(md, &elem, order);
    static const int32_t end = 0; /* the class of the end-of-document element */
    add(md, &end, sizeof end);
}

/* `elem->key` NULL: a value without a name. Depth is bounded by that of a validated document. */
static void add_value(EVP_MD_CTX *md, const struct belem *elem, const struct bval_order *order)
{
    const struct bval *val = &elem->val;
    int32_t class = (int32_t)bval_class(val->type);
    add(md, &class, sizeof class);
    if (elem->key != NULL)
        add(md, elem->key, elem->key_len + 1);
    switch (bval_class(val->type)) {
    case BCLASS_NUMBER:
        add_number(md, val);
        break;
    case BCLASS_DOCUMENT:
    case BCLASS_ARRAY:
        add_fields(md, bval_doc(val), order);
        break;
    case BCLASS_CODE_WITH_SCOPE: {
        uint32_t code_size = load_le32(val->data + 4);
        add(md, val->data + 8, code_size);
        add_fields(md, (struct bdoc){.data = val->data + 8 + code_size, .len = val->len - 8 - code_size}, order);
        break;
    }
    default:
        if (order != NULL && bval_class(val->type) == BCLASS_STRING)
            add_ordered_text(md, val, order);
        else if (val->len > 0)
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

static int64_t hash(const struct bval *val, int32_t seed, const struct bval_order *order)
{
    const struct belem elem = {.val = *val};
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    unsigned char digest[EVP_MAX_MD_SIZE];
    CHECK(md != NULL && EVP_DigestInit_ex2(md, md5(), NULL) == 1);
    add(md, &seed, sizeof seed);
    add_value(md, &elem, order);
    CHECK(EVP_DigestFinal_ex(md, digest, NULL) == 1);
    EVP_MD_CTX_free(md);
    return (int64_t)load_le64(digest);
}

int64_t bval_hash_seeded(const struct bval *val, int32_t seed)
{
    return hash(val, seed, NULL);
}

int64_t bval_hash(const struct bval *val)
{
    return hash(val, 0, NULL);
}

int64_t bval_hash_ordered(const struct bval *val, const struct bval_order *order)
{
    return hash(val, 0, order);
}
