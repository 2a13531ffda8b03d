import { useEffect, useState } from 'react'

type SearchFieldProps = { label: string; placeholder: string; value: string; onChange: (text: string) => void }

/** A search begins when the user of the page has not typed for this many ms. */
const pauseMilliseconds = 300

/** A text field for a search. `onChange` is called with the text when the user has not typed for a moment. */
export const SearchField = ({ label, placeholder, value, onChange }: SearchFieldProps) => {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (text === value) return
    const timer = setTimeout(() => onChange(text), pauseMilliseconds)
    return () => clearTimeout(timer)
  }, [text, value, onChange])
  return (
    <input
      className="input search"
      type="search"
      aria-label={label}
      placeholder={placeholder}
      value={text}
      onChange={(event) => setText(event.target.value)}
    />
  )
}
