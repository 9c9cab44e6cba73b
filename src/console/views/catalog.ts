import { defineView, page } from '../view.ts'
import { moment } from '../wording.ts'

const SIGNS = { added: '+', removed: '−', changed: '~' } as const
const WORDS = { added: 'added', removed: 'removed', changed: 'changed' } as const

/** The catalog: what is served, what is wrong with its file, and what the last revision has changed for buyers. */
export const catalog = defineView('catalog', 'Catalog', async ({ sources }) => {
  const { service, catalogReport } = sources
  const { catalog: served } = service.revision()
  const refused = service.refused()
  const { file, warnings, difference } = catalogReport()
  return page('Catalog', {
    file,
    name: served.service.name,
    version: served.service.version,
    revision: served.revision,
    refused:
      refused === undefined
        ? ''
        : {
            at: moment(Date.parse(refused.refused_at)),
            errors: refused.errors.map(({ code, line, column }) => ({
              code,
              place: line === undefined ? '' : `line ${line}, column ${column ?? 1}`,
            })),
          },
    warnings: warnings.map(({ message, line }) => ({ message, line: String(line) })),
    difference:
      difference === undefined
        ? ''
        : {
            before: difference.before,
            isEmpty: difference.changes.length + difference.lines.length === 0,
            alarms: difference.alarms,
            lines: difference.lines,
            changes: difference.changes.map(({ kind, name, price, parameters }) => ({
              sign: SIGNS[kind],
              words: WORDS[kind],
              name,
              price,
              parameters,
            })),
          },
  })
})
