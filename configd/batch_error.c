#include "configd/batch_error.h"

#include <inttypes.h>

bool batch_error_ends(const struct err *failed, int64_t changed, struct err *out)
{
    unsigned categories = err_categories(failed->code);
    if (!(categories & ERR_CAT_RETRYABLE)) {
        return false;
    }
    if (changed > 0 && !(categories & ERR_CAT_UNKNOWN)) {
        err_set(out, ERR_InterruptedDueToReplStateChange,
                "the command was interrupted after it had changed %" PRId64 " documents: %s", changed, failed->msg);
    } else {
        *out = *failed;
    }
    return true;
}
