import type { Catalog } from '../../engine/catalog/catalog.ts'
import { fails, ok, type CheckResult } from './check-result.ts'
import { visit } from './visit.ts'

/** Whether the site behind the catalog can be reached from here. */
export async function checkSite({ passthrough }: Catalog): Promise<CheckResult[]> {
  if (passthrough === undefined) return []
  const { url } = passthrough
  const found = await visit(url, '/')
  return [
    found.kind === 'fault'
      ? fails('passthrough', `${url} cannot be reached: ${found.reason}`)
      : ok('passthrough', `${url} answers with ${found.status}`),
  ]
}
