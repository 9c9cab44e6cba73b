import { CatalogError, type Catalog, type Service } from '../engine/index.ts'
import { examine } from './announce.ts'
import type { Call } from './command.ts'

export interface Reload {
  readonly file: string
  readonly service: Service
  readonly load: () => Catalog
  /** Why a sound catalog cannot be served by this process, one sentence each. */
  readonly problems: (catalog: Catalog) => readonly string[]
}

/** Builds the new revision beside the old one; a file that cannot be served changes nothing, whatever is wrong with it. */
export function reload(call: Call, { file, service, load, problems }: Reload): void {
  const { terminal } = call
  const before = service.revision().catalog.revision
  const kept = (reason: string): void => terminal.err(`${reason}\n\n${file}: kept revision ${before}`)
  try {
    const next = load()
    const found = problems(next)
    if (found.length > 0) return kept(found.map((problem) => `ratecard serve: ${problem}`).join('\n'))
    const { catalog } = service.swap(next)
    terminal.err(`${file}: revision ${before} → ${catalog.revision} (new handler code needs a restart)`)
    examine(call, service)
  } catch (fault) {
    if (fault instanceof CatalogError) return kept(fault.message)
    kept(`unexpected: ${fault instanceof Error ? (fault.stack ?? fault.message) : String(fault)}`)
  }
}
