/**
 * A terminal's answers to questions in the output, for example for its cursor position. Answers to stored output must not be sent,
 * because the shell would take them for typed text.
 */
const report =
  /^(?:\u001b\[[?>=]?[\d;]*(?:[cRnyx]|\$y|t)|\u001b[P\]_][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b\[[IO])+$/

export const isReport = (data: string): boolean => report.test(data)
