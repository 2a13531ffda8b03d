import { toastError } from '../../../ui/toast.tsx'

const refused = new Error(
  'The browser allows the clipboard only on pages with HTTPS or on localhost, and only with your permission.',
)

/** Copies a text to the clipboard. It also works on pages without HTTPS, where the browser has no `navigator.clipboard`. */
export const copyText = async (text: string): Promise<void> => {
  if (text === '') return
  try {
    await navigator.clipboard.writeText(text)
  } catch {
    const put = (event: ClipboardEvent) => {
      event.clipboardData?.setData('text/plain', text)
      event.preventDefault()
    }
    document.addEventListener('copy', put, { once: true, capture: true })
    const isCopied = document.execCommand('copy')
    document.removeEventListener('copy', put, { capture: true })
    if (!isCopied) toastError('Copying did not work', refused)
  }
}

/** Returns the text on the clipboard. If the browser refuses access, returns undefined and shows a message. */
export const clipboardText = async (): Promise<string | undefined> => {
  try {
    return await navigator.clipboard.readText()
  } catch {
    toastError('Pasting did not work', new Error(`${refused.message} Ctrl+Shift+V always works.`))
    return undefined
  }
}
