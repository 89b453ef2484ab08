/* shardd: a member of a shard. It keeps documents and knows which ranges of keys are its own. */
#include "node/node.h"

int main(int argc, char **argv)
{
    static const struct node_program program = {
        .name = "shardd",
        .summary = "a member of a Sherd shard: stores documents and answers routers",
        .default_port = 27018,
    };
    return node_main(argc, argv, &program);
}
