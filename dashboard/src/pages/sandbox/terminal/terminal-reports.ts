/**
 * Matches the answers that a terminal sends when output asks for its cursor position, type, colours or settings. When stored output
 * is shown again after a reconnection, these answers must not be sent, because the shell would take them for typed text.
 */
const report =
  /^(?:\u001b\[[?>=]?[\d;]*(?:[cRnyx]|\$y|t)|\u001b[P\]_][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b\[[IO])+$/

export const isReport = (data: string): boolean => report.test(data)
