import { Empty, Page } from '../../ui/page.tsx'

const UnfinishedPage = () => (
  <Page title="Warm pools">
    <Empty title="This page is not built yet" />
  </Page>
)

export default UnfinishedPage
