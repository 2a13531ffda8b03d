/** How much text can be pasted at once, in characters. */
export const longestPaste = 1024 * 1024

const unwanted = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g

/**
 * A text for pasting, without control characters but tabs and line ends. So a copied text cannot end the terminal's bracketed
 * paste and then give commands.
 */
export const pastedText = (text: string): string => text.replace(unwanted, '')

/** How many lines a text has. A shell may run each line at once, so that more than one is asked about first. */
export const linesOf = (text: string): number => text.replace(/\r?\n$/, '').split(/\r\n|\r|\n/).length

/** Whether to ask before a text is pasted: it has several lines, or a line end that makes a shell run it. */
export const isAskedFor = (text: string): boolean => /[\r\n]/.test(text)
