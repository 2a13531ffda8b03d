// Some programs run only as process 1, which in a sandbox is the agent. Such a program ends with a message that looks like an error
// of Alcove. The toolbox adds an explanation.

/** Error messages of s6-overlay, runit, systemd, and the inits of busybox and System V, if they are not process 1. */
const complaint =
  /\b(?:only|must|has to|needs to)\b[^\n]{0,40}\b(?:pid|process(?: (?:id|no\.?|number))?)\s*1\b|not been booted with systemd/i

/**
 * A program that must be process 1 says so just before it ends. Only this many bytes at the end of its output are searched for
 * that.
 */
export const complaintBytes = 4096

export const notProcessOne =
  '\n[not process 1: in a sandbox that is the agent. Programs that insist on it, such as s6-overlay and systemd, do not run here.' +
  ' Start the service itself, or by supervisord, tini or dumb-init.]\n'

/** Whether a program failed because it was not process 1. `lastWords` is the end of its output. */
export const wantedToBeFirst = (lastWords: string, exitCode: number): boolean =>
  exitCode !== 0 && complaint.test(lastWords.slice(-complaintBytes))
