#include "shell/interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t pending;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    pending = 1;
}

void interrupt_install(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

bool interrupt_pending(void)
{
    return pending != 0;
}

void interrupt_clear(void)
{
    pending = 0;
}
