// Some programs run as process 1 only. In a sandbox that is the agent, so they end at once and say something that reads like our
// mistake. Our sentence goes beside theirs.

/** How s6-overlay, runit, the inits of busybox and System V, and systemd say it. */
const complaint =
  /\b(?:only|must|has to|needs to)\b[^\n]{0,40}\b(?:pid|process(?: (?:id|no\.?|number))?)\s*1\b|not been booted with systemd/i

/** The complaint is among the last that such a program writes. */
export const complaintBytes = 4096

export const notProcessOne =
  '\n[not process 1: in a sandbox that is the agent. Programs that insist on it, such as s6-overlay and systemd, do not run here.' +
  ' Start the service itself, or by supervisord, tini or dumb-init.]\n'

/** Whether a program that wrote this has failed because it was not process 1. */
export const wantedToBeFirst = (lastWords: string, exitCode: number): boolean =>
  exitCode !== 0 && complaint.test(lastWords.slice(-complaintBytes))
