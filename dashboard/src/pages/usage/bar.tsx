const number = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })

/** If at least this share of a quota is used, the bar shows that the quota is nearly used up. */
const nearlyAll = 0.9

type Props = { name: string; used: number; allowed: number; unit?: string }

/** Shows how much of a quota is used, as a bar and as numbers. */
export const Bar = ({ name, used, allowed, unit = '' }: Props) => {
  const share = allowed > 0 ? Math.min(used / allowed, 1) : used > 0 ? 1 : 0
  return (
    <div className="quota">
      <div className="row spread">
        <span>{name}</span>
        <span className="quota-numbers">
          <strong>{number.format(used)}</strong>{' '}
          <span className="muted">
            of {number.format(allowed)} {unit}
          </span>
        </span>
      </div>
      <div
        className={share >= nearlyAll ? 'meter high' : 'meter'}
        role="meter"
        aria-label={name}
        aria-valuemin={0}
        aria-valuemax={allowed}
        aria-valuenow={Math.min(used, allowed)}
        aria-valuetext={`${number.format(used)} of ${number.format(allowed)} ${unit}`}
      >
        <span style={{ width: `${share * 100}%` }} />
      </div>
    </div>
  )
}
