import { CheckField } from '../ui/field.tsx'
import { useRoles } from './use-roles.ts'
import './roles.css'

type Props = {
  label: string
  /** The ids of the chosen roles. */
  chosen: readonly string[]
  onChange: (chosen: readonly string[]) => void
}

/** A checklist of the roles that the organization can give, with a description of each. */
export const RoleChoice = ({ label, chosen, onChange }: Props) => {
  const roles = useRoles()
  return (
    <fieldset className="role-choice">
      <legend className="field-label">{label}</legend>
      {roles.data === undefined && <div className="muted">Loading…</div>}
      {roles.data?.map(({ id, name, description }) => (
        <CheckField
          key={id}
          checked={chosen.includes(id)}
          onChange={(isChosen) => onChange(isChosen ? [...chosen, id] : chosen.filter((each) => each !== id))}
          label={
            <>
              <bdi>{name}</bdi> <span className="muted small wrap-anywhere">{description}</span>
            </>
          }
        />
      ))}
    </fieldset>
  )
}
