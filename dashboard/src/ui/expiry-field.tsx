import { type Expiry, never, onDate } from './expiry.ts'
import { SelectField, TextField } from './field.tsx'

const choices = [
  { value: '1', label: 'In a day' },
  { value: '7', label: 'In 7 days' },
  { value: '30', label: 'In 30 days' },
  { value: '90', label: 'In 90 days' },
  { value: '365', label: 'In a year' },
  { value: onDate, label: 'On a date…' },
]

type Props = {
  label: string
  hint?: string | undefined
  value: Expiry
  onChange: (value: Expiry) => void
  /** The text of the choice to have no expiry. If absent, an expiry must be chosen. */
  neverLabel?: string | undefined
}

/** A field in which the user chooses when something expires. {@link expiresAt} turns the choice into a time. */
export const ExpiryField = ({ label, hint, value, onChange, neverLabel }: Props) => (
  <div className="stack" style={{ gap: 6 }}>
    <SelectField
      label={label}
      hint={hint}
      value={value.days}
      onChange={(days) => onChange({ ...value, days })}
      options={[...(neverLabel === undefined ? [] : [{ value: never, label: neverLabel }]), ...choices]}
    />
    {value.days === onDate && (
      <TextField label="Expiry date" type="date" value={value.date} onChange={(date) => onChange({ ...value, date })} />
    )}
  </div>
)
