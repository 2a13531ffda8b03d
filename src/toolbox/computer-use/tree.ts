// Makes an accessibility tree of its nodes, which come from the sandbox as a flat list.
import { Problem } from '#src/problems.ts'
import type { TreeNode, TreeRows } from './schemas.ts'

/** Throws a 422 if a node comes before its parent, because such a list could contain a cycle. */
export const treeOf = ({ rows, truncated }: TreeRows): { root?: TreeNode; truncated: boolean } => {
  const nodes: TreeNode[] = []
  for (const [at, { parent, ...row }] of rows.entries()) {
    const node: TreeNode = row
    nodes.push(node)
    if (at === 0 && parent === null) continue
    const above = parent === null || parent >= at ? undefined : nodes[parent]
    if (above === undefined) throw new Problem('unprocessable', 'The accessibility tree has no order.')
    above.children ??= []
    above.children.push(node)
  }
  const [root] = nodes
  return root === undefined ? { truncated } : { root, truncated }
}
