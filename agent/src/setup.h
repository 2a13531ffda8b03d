/*
 * What the agent makes of itself once, and what it takes back in each process that it starts.
 */
#ifndef ALCOVE_SETUP_H
#define ALCOVE_SETUP_H

/* Hides the agent from those it serves, brings up loopback, and keeps descriptors 0 to 3 of those that it finds. */
void setup_agent(void);
/*
 * In a forked process, while the agent's descriptors are still open: default signals, the limits and the out-of-memory score
 * of an ordinary process, own session.
 */
void setup_child(void);
/* Closes every descriptor from this one up. */
void close_from(int first);

#endif
