import { CatalogError, type Catalog, type Issue, type Service } from '../engine/index.ts'
import type { Call } from './command.ts'

export interface Reload {
  readonly file: string
  readonly service: Service
  readonly load: () => Catalog
  /** Why a sound catalog cannot be served by this process, one sentence each. */
  readonly problems: (catalog: Catalog) => readonly string[]
}

type Errors = Parameters<Service['refuse']>[0]

/** Builds the new revision while the old one serves; a file that cannot be served changes nothing, whatever is wrong with it. */
export function reload(call: Call, { file, service, load, problems }: Reload): void {
  const { terminal } = call
  const before = service.revision().catalog.revision
  const kept = (reason: string, errors: Errors): void => {
    service.refuse(errors)
    terminal.err(`${reason}\n\n${file}: still serving revision ${before}`)
  }
  try {
    const next = load()
    const found = problems(next)
    if (found.length > 0) {
      const reason = found.map((problem) => `ratecard serve: ${problem}`).join('\n')
      return kept(reason, [{ code: 'not_servable_here' }])
    }
    const { catalog } = service.swap(next)
    terminal.err(`${file}: revision ${before} → ${catalog.revision} (new handler code needs a restart)`)
  } catch (fault) {
    if (fault instanceof CatalogError)
      return kept(fault.message, fault.issues.filter(({ severity }) => severity === 'error').map(placeOf))
    const reason = `unexpected: ${fault instanceof Error ? (fault.stack ?? fault.message) : String(fault)}`
    kept(reason, [{ code: 'unexpected' }])
  }
}

/** Its words could quote what must not be public, such as a key in the wrong place. */
function placeOf({ code, position: { line, column } }: Issue): Errors[number] {
  return { code, line, column }
}
