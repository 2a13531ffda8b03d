// Makes an accessibility tree from a flat list of nodes, which comes from the sandbox.
import { Problem } from '#src/problems.ts'
import type { TreeNode, TreeRows } from './schemas.ts'

/** Maximum number of levels of an accessibility tree. A correct program in the sandbox returns fewer levels. */
const deepest = 100

/**
 * Makes an accessibility tree. Throws a 422 if the tree is too deep, or if a row precedes its parent: such rows could form a cycle.
 */
export const treeOf = ({ rows, truncated }: TreeRows): { root?: TreeNode; truncated: boolean } => {
  const nodes: TreeNode[] = []
  const depths: number[] = []
  for (const [at, { parent, ...row }] of rows.entries()) {
    const node: TreeNode = row
    nodes.push(node)
    const depth = parent === null ? 0 : (depths[parent] ?? 0) + 1
    depths.push(depth)
    if (at === 0 && parent === null) continue
    const above = parent === null || parent >= at ? undefined : nodes[parent]
    if (above === undefined || depth > deepest)
      throw new Problem('unprocessable', 'The accessibility tree has no order, or is too deep.')
    above.children ??= []
    above.children.push(node)
  }
  const [root] = nodes
  return root === undefined ? { truncated } : { root, truncated }
}
