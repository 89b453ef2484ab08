#include "query/sort_runs.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/interrupt.h"
#include "base/mem.h"
#include "base/temp_space.h"

#include <string.h>

enum {
    ITEM_HEADER_BYTES = 16, /* key length, document length, tag */
};

struct run {
    int64_t begin; /* offsets in the file */
    int64_t end;
};

/* One run being read. */
struct reader {
    struct temp_file *file;
    int64_t at; /* next byte of the file to read */
    int64_t end;
    struct buf buffer;
    size_t used; /* bytes of the buffer that were handed out */
    struct sort_item item;
    uint64_t prefix; /* of item's key */
    size_t index;    /* of the run: the order of equal items */
};

struct sort_runs {
    struct temp_space *space;
    struct temp_file *file; /* holds all runs of the list; NULL: none yet */
    struct run *list;
    size_t count;
    size_t capacity;
    struct reader *readers; /* of the merge under way */
    size_t reader_count;
    struct reader **heap; /* least item first */
    size_t heap_count;
    bool step; /* the heap's first item was handed out and must be moved past */
    struct sorter_stats stats;
};

uint64_t sort_key_prefix(const uint8_t *key, size_t len)
{
    if (len >= 8)
        return load_be64(key);
    uint8_t padded[8] = {0};
    if (len > 0)
        memcpy(padded, key, len);
    return load_be64(padded);
}

int sort_key_compare(uint64_t a_prefix, const uint8_t *a, uint32_t a_len, uint64_t b_prefix, const uint8_t *b,
                     uint32_t b_len)
{
    if (a_prefix != b_prefix)
        return a_prefix < b_prefix ? -1 : 1;
    uint32_t common = a_len < b_len ? a_len : b_len;
    int order = common > 0 ? memcmp(a, b, common) : 0;
    return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

struct sort_runs *sort_runs_new(struct temp_space *space)
{
    struct sort_runs *runs = mem_alloc(sizeof *runs);
    runs->space = space;
    return runs;
}

static void close_readers(struct sort_runs *runs)
{
    for (size_t i = 0; i < runs->reader_count; i++)
        buf_deinit(&runs->readers[i].buffer);
    mem_free(runs->readers);
    mem_free(runs->heap);
    runs->readers = NULL;
    runs->heap = NULL;
    runs->reader_count = 0;
    runs->heap_count = 0;
}

void sort_runs_free(struct sort_runs *runs)
{
    if (runs == NULL)
        return;
    close_readers(runs);
    temp_file_close(runs->file);
    mem_free(runs->list);
    mem_free(runs);
}

/* ---- writing ---- */

bool sort_runs_begin(struct sort_runs *runs, struct err *err)
{
    if (runs->file == NULL && !temp_file_open(runs->space, &runs->file, err))
        return false;
    if (runs->count == runs->capacity) {
        runs->capacity = runs->capacity == 0 ? 16 : runs->capacity * 2;
        runs->list = mem_realloc(runs->list, runs->capacity * sizeof *runs->list);
    }
    runs->list[runs->count++].begin = temp_file_size_bytes(runs->file);
    return true;
}

static bool append_item(struct temp_file *file, const struct sort_item *item, struct err *err)
{
    uint8_t header[ITEM_HEADER_BYTES];
    uint32_t doc_len = item->doc.data != NULL ? item->doc.len : 0;
    store_le32(header, item->key_len);
    store_le32(header + 4, doc_len);
    store_le64(header + 8, item->tag);
    return temp_file_append(file, header, sizeof header, err) &&
           temp_file_append(file, item->key, item->key_len, err) &&
           (doc_len == 0 || temp_file_append(file, item->doc.data, doc_len, err));
}

bool sort_runs_append(struct sort_runs *runs, const struct sort_item *item, struct err *err)
{
    return append_item(runs->file, item, err);
}

static void count_run(struct sort_runs *runs, const struct run *run)
{
    runs->stats.runs++;
    runs->stats.spilled_bytes += run->end - run->begin;
}

bool sort_runs_end(struct sort_runs *runs, struct err *err)
{
    struct run *run = &runs->list[runs->count - 1];
    run->end = temp_file_size_bytes(runs->file);
    count_run(runs, run);
    return temp_file_flush(runs->file, err);
}

/* ---- reading ---- */

/* At least `need` bytes behind `used`. */
static bool reader_fill(struct reader *reader, size_t need, struct err *err)
{
    size_t held = reader->buffer.len - reader->used;
    if (held >= need)
        return true;
    if (held > 0)
        memmove(reader->buffer.data, reader->buffer.data + reader->used, held);
    reader->buffer.len = held;
    reader->used = 0;
    int64_t left = reader->end - reader->at;
    size_t want = need - held > SORT_RUN_BUFFER_BYTES ? need - held : SORT_RUN_BUFFER_BYTES;
    if ((int64_t)want > left)
        want = (size_t)left;
    if (held + want < need)
        return err_set(err, ERR_OperationFailed, "a run of a sort on disk is damaged");
    if (!temp_file_read(reader->file, reader->at, buf_reserve(&reader->buffer, want), want, err))
        return false;
    reader->buffer.len += want;
    reader->at += (int64_t)want;
    return true;
}

/* *found false: the run is used up. */
static bool reader_next(struct reader *reader, bool *found, struct err *err)
{
    *found = reader->buffer.len > reader->used || reader->at < reader->end;
    if (!*found)
        return true;
    if (!reader_fill(reader, ITEM_HEADER_BYTES, err))
        return false;
    const uint8_t *header = reader->buffer.data + reader->used;
    uint32_t key_len = load_le32(header);
    uint32_t doc_len = load_le32(header + 4);
    uint64_t tag = load_le64(header + 8);
    size_t whole = (size_t)ITEM_HEADER_BYTES + key_len + doc_len;
    if (!reader_fill(reader, whole, err))
        return false;
    const uint8_t *key = reader->buffer.data + reader->used + ITEM_HEADER_BYTES;
    reader->item = (struct sort_item){.key = key, .key_len = key_len, .tag = tag};
    if (doc_len > 0)
        reader->item.doc = (struct bdoc){.data = key + key_len, .len = doc_len};
    reader->prefix = sort_key_prefix(key, key_len);
    reader->used += whole;
    return true;
}

static bool comes_before(const struct reader *a, const struct reader *b)
{
    int order = sort_key_compare(a->prefix, a->item.key, a->item.key_len, b->prefix, b->item.key, b->item.key_len);
    return order != 0 ? order < 0 : a->index < b->index;
}

static void sift_down(struct sort_runs *runs, size_t at)
{
    struct reader **heap = runs->heap;
    for (;;) {
        size_t child = at * 2 + 1;
        if (child >= runs->heap_count)
            return;
        if (child + 1 < runs->heap_count && comes_before(heap[child + 1], heap[child]))
            child++;
        if (!comes_before(heap[child], heap[at]))
            return;
        struct reader *other = heap[at];
        heap[at] = heap[child];
        heap[child] = other;
        at = child;
    }
}

/* Stands before the first item of runs [first, first + count). */
static bool open_readers(struct sort_runs *runs, size_t first, size_t count, struct err *err)
{
    close_readers(runs);
    runs->readers = mem_alloc_array(count, sizeof *runs->readers);
    runs->heap = mem_alloc_array(count, sizeof *runs->heap);
    runs->reader_count = count;
    runs->step = false;
    for (size_t i = 0; i < count; i++) {
        struct reader *reader = &runs->readers[i];
        const struct run *run = &runs->list[first + i];
        bool found;
        *reader = (struct reader){.file = runs->file, .at = run->begin, .end = run->end, .index = i};
        if (!reader_next(reader, &found, err))
            return false;
        if (found)
            runs->heap[runs->heap_count++] = reader;
    }
    for (size_t i = runs->heap_count / 2; i-- > 0;)
        sift_down(runs, i);
    return true;
}

bool sort_runs_next(struct sort_runs *runs, struct sort_item *out, bool *found, struct err *err)
{
    if (!interrupt_step(err))
        return false;
    if (runs->step) {
        bool more;
        if (!reader_next(runs->heap[0], &more, err))
            return false;
        if (!more)
            runs->heap[0] = runs->heap[--runs->heap_count];
        sift_down(runs, 0);
    }
    *found = runs->heap_count > 0;
    runs->step = *found;
    if (*found)
        *out = runs->heap[0]->item;
    return true;
}

/* The runs at hand into one at the end of `file`. */
static bool merge_group(struct sort_runs *runs, struct temp_file *file, struct run *merged, struct err *err)
{
    struct sort_item item;
    bool found = true;
    merged->begin = temp_file_size_bytes(file);
    while (found) {
        if (!sort_runs_next(runs, &item, &found, err) || (found && !append_item(file, &item, err)))
            return false;
    }
    merged->end = temp_file_size_bytes(file);
    count_run(runs, merged);
    return true;
}

/* Each SORT_MERGE_WAYS runs become one, in a new file. */
static bool merge_pass(struct sort_runs *runs, struct err *err)
{
    struct temp_file *file;
    size_t count = 0;
    if (!temp_file_open(runs->space, &file, err))
        return false;
    bool ok = true;
    for (size_t first = 0; ok && first < runs->count; first += SORT_MERGE_WAYS) {
        size_t ways = runs->count - first < SORT_MERGE_WAYS ? runs->count - first : SORT_MERGE_WAYS;
        ok = open_readers(runs, first, ways, err) && merge_group(runs, file, &runs->list[count++], err);
    }
    close_readers(runs);
    if (!ok || !temp_file_flush(file, err)) {
        temp_file_close(file);
        return false;
    }
    temp_file_close(runs->file);
    runs->file = file;
    runs->count = count;
    return true;
}

bool sort_runs_merge(struct sort_runs *runs, struct err *err)
{
    CHECK(runs->file != NULL);
    while (runs->count > SORT_MERGE_WAYS) {
        if (!merge_pass(runs, err))
            return false;
    }
    return open_readers(runs, 0, runs->count, err);
}

size_t sort_runs_memory_bytes(const struct sort_runs *runs)
{
    size_t bytes = runs->capacity * sizeof *runs->list;
    for (size_t i = 0; i < runs->reader_count; i++)
        bytes += sizeof runs->readers[i] + runs->readers[i].buffer.cap;
    return bytes;
}

void sort_runs_stats(const struct sort_runs *runs, struct sorter_stats *out)
{
    *out = runs->stats;
}
