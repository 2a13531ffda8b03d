import type { TabProps } from '../tabs.ts'
import { Facts } from './facts.tsx'
import { Timeline } from './timeline.tsx'

const OverviewTab = ({ sandbox }: TabProps) => (
  <div className="two-columns">
    <Timeline sandboxId={sandbox.id} />
    <Facts sandbox={sandbox} />
  </div>
)

export default OverviewTab
