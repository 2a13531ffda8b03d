import {
  type InputHTMLAttributes,
  type ReactNode,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useId,
} from 'react'

type Common = { label: ReactNode; hint?: ReactNode; error?: string | undefined }

/** Draws the label, the hint and the error of an input. Screen readers read them together with the input. */
const Field = ({
  label,
  hint,
  error,
  children,
}: Common & {
  children: (props: { id: string; 'aria-describedby': string; 'aria-invalid': boolean }) => ReactNode
}) => {
  const id = useId()
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, 'aria-describedby': `${id}-hint`, 'aria-invalid': error !== undefined })}
      <div id={`${id}-hint`} className={error === undefined ? 'field-hint' : 'field-error'}>
        {error ?? hint}
      </div>
    </div>
  )
}

type Changed<T> = Omit<T, 'onChange' | 'value'> & { value: string; onChange: (value: string) => void }

export const TextField = ({
  label,
  hint,
  error,
  onChange,
  ...rest
}: Common & Changed<InputHTMLAttributes<HTMLInputElement>>) => (
  <Field label={label} hint={hint} error={error}>
    {(props) => (
      <input
        className="input"
        autoComplete="off"
        {...rest}
        {...props}
        onChange={(event) => onChange(event.target.value)}
      />
    )}
  </Field>
)

export const TextArea = ({
  label,
  hint,
  error,
  onChange,
  ...rest
}: Common & Changed<TextareaHTMLAttributes<HTMLTextAreaElement>>) => (
  <Field label={label} hint={hint} error={error}>
    {(props) => <textarea className="input" {...rest} {...props} onChange={(event) => onChange(event.target.value)} />}
  </Field>
)

export type Option = { value: string; label: string }

/** A choice among a few values. The browser's `select` works with all keyboards and screen readers. */
export const SelectField = ({
  label,
  hint,
  error,
  options,
  onChange,
  ...rest
}: Common & Changed<SelectHTMLAttributes<HTMLSelectElement>> & { options: readonly Option[] }) => (
  <Field label={label} hint={hint} error={error}>
    {(props) => (
      <select className="input" {...rest} {...props} onChange={(event) => onChange(event.target.value)}>
        {options.map(({ value, label: text }) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    )}
  </Field>
)

export const CheckField = ({
  label,
  checked,
  onChange,
  ...rest
}: { label: ReactNode; checked: boolean; onChange: (checked: boolean) => void } & Omit<
  InputHTMLAttributes<HTMLInputElement>,
  'onChange'
>) => (
  <label className="check">
    <input type="checkbox" checked={checked} onChange={(event) => onChange(event.target.checked)} {...rest} />
    <span>{label}</span>
  </label>
)
