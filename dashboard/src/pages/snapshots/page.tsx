import { Empty, Page } from '../../ui/page.tsx'

const UnfinishedPage = () => (
  <Page title="Snapshots">
    <Empty title="This page is not built yet" />
  </Page>
)

export default UnfinishedPage
