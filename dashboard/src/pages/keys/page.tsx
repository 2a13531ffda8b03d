import { Empty, Page } from '../../ui/page.tsx'

const UnfinishedPage = () => (
  <Page title="Keys">
    <Empty title="This page is not built yet" />
  </Page>
)

export default UnfinishedPage
