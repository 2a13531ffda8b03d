import { Empty } from '../../../ui/page.tsx'
import type { TabProps } from '../tabs.ts'

const FilesTab = (_: TabProps) => <Empty title="This part is not built yet" />

export default FilesTab
