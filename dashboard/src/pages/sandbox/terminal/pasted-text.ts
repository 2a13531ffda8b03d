/** Length of the longest text that can be pasted, in characters. */
export const longestPaste = 1024 * 1024

const unwanted = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g

/**
 * Removes control characters except tabs and line ends. A control character could end the bracketed paste, and the shell would run
 * the rest.
 */
export const pastedText = (text: string): string => text.replace(unwanted, '')

/** How many lines a text has. An empty last line does not count. */
export const linesOf = (text: string): number => text.replace(/\r?\n$/, '').split(/\r\n|\r|\n/).length

/** Whether the page asks before it pastes a text. It asks if the text has a line end, because a shell would run that line. */
export const isAskedFor = (text: string): boolean => /[\r\n]/.test(text)
