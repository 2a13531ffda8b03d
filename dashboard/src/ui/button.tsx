import type { ButtonHTMLAttributes } from 'react'

type Look = {
  kind?: 'primary' | 'danger' | 'quiet' | 'danger primary' | undefined
  compact?: boolean | undefined
}

export type ButtonProps = Look & ButtonHTMLAttributes<HTMLButtonElement>

/** The CSS classes of a button, for links that should look like a button. */
export const buttonClass = ({ kind, compact }: Look = {}, more = ''): string =>
  ['button', kind, compact && 'compact', more].filter(Boolean).join(' ')

export const Button = ({ kind, compact, className, type = 'button', ...rest }: ButtonProps) => (
  <button type={type} className={buttonClass({ kind, compact }, className)} {...rest} />
)

/** A button that shows only an icon. `label` is its name for screen readers and its tooltip. */
export const IconButton = ({ label, className = '', ...rest }: ButtonProps & { label: string }) => (
  <Button aria-label={label} title={label} className={`icon ${className}`} {...rest} />
)
