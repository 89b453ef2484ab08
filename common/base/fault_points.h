/* FAULT_POINT(name): places where a test can make a process fail. Included by fault.h and fault.c. No guard: an X-macro
 * list. */
FAULT_POINT(apply_before_commit)
FAULT_POINT(apply_after_commit)
FAULT_POINT(checkpoint_before_sync)
FAULT_POINT(checkpoint_before_rename)
FAULT_POINT(checkpoint_after_rename)
FAULT_POINT(rpc_drop_reply)
FAULT_POINT(shard_collection_after_prepare)
FAULT_POINT(shard_collection_after_commit)
