/*
 * Sets up the agent at its start. Also gives each process that the agent starts the signals and limits of an ordinary process.
 */
#ifndef ALCOVE_SETUP_H
#define ALCOVE_SETUP_H

/*
 * Hides the agent from processes of the sandbox, activates the loopback network interface, and closes all descriptors above 3.
 */
void setup_agent(void);
/*
 * Called in a forked process while the agent's descriptors are still open. Sets the signals, limits and out-of-memory score of an
 * ordinary process, and a new session.
 */
void setup_child(void);
/* Closes the descriptor `first` and all higher descriptors. */
void close_from(int first);

#endif
