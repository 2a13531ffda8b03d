/**
 * Answers that a terminal gives to questions in the output: its position, kind, colours and settings. When old output is
 * shown again, its old questions must not be answered again: the shell would take the answers for typed text.
 */
const report =
  /^(?:\u001b\[[?>=]?[\d;]*(?:[cRnyx]|\$y|t)|\u001b[P\]_][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b\[[IO])+$/

export const isReport = (data: string): boolean => report.test(data)
