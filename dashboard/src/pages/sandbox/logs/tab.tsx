import { Empty } from '../../../ui/page.tsx'
import type { TabProps } from '../tabs.ts'

const LogsTab = (_: TabProps) => <Empty title="This part is not built yet" />

export default LogsTab
