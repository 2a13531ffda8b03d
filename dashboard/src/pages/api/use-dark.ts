import { useSyncExternalStore } from 'react'

const preference = matchMedia('(prefers-color-scheme: dark)')

const subscribe = (listener: () => void): (() => void) => {
  const observer = new MutationObserver(listener)
  observer.observe(document.documentElement, { attributeFilter: ['data-theme'] })
  preference.addEventListener('change', listener)
  return () => {
    observer.disconnect()
    preference.removeEventListener('change', listener)
  }
}

const isDark = (): boolean =>
  (document.documentElement.dataset['theme'] ?? (preference.matches ? 'dark' : 'light')) === 'dark'

/** Whether the page is dark now. For libraries such as Swagger UI, which do not use the page's CSS variables. */
export const useDark = (): boolean => useSyncExternalStore(subscribe, isDark)
