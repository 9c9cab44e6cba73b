import { Cache, createMemoryCache } from '../../engine/cache/cache.ts'
import type { Catalog } from '../../engine/catalog/catalog.ts'
import { Failure, InvalidParameter } from '../../engine/base/errors.ts'
import { tryOperations, type Trial } from '../../engine/http/trial.ts'
import { systemRuntime } from '../../engine/base/runtime.ts'
import type { SourceFigures } from '../../engine/service-definition.ts'
import { columnsFor } from '../terminal-text.ts'
import type { Call } from '../command.ts'
import { UsageError } from '../../command-line/usage-error.ts'
import { previewRevision } from '../preview.ts'

/**
 * Runs every route and tool against its outside sources, from this machine; charges nothing. With `--sources` only as many
 * as it takes to ask every source once.
 */
export async function trySources(call: Call): Promise<number> {
  const { flags, terminal, env } = call
  if (flags.given('json')) throw new UsageError('--json goes with a url')
  const figuresNow = (): ReadonlyMap<string, SourceFigures> => call.service.sources?.() ?? new Map()
  const { catalog, revision } = await previewRevision(call, flags.text('catalog') ?? env.catalog)
  const deps = { ...systemRuntime, cache: new Cache(createMemoryCache(), systemRuntime.now) }
  const isUnasked = (source: string): boolean => figuresNow().get(source)?.asked === 0
  const trials: Trial[] = []
  for await (const trial of tryOperations(
    revision,
    deps,
    ({ sources }) => !flags.given('sources') || sources.some(isUnasked),
    flags.given('sources') ? (call.service.probes ?? {}) : {},
  )) {
    trials.push(trial)
    terminal.progress(trial.path)
  }
  const shown = flags.given('sources') ? trials.filter(({ outcome }) => outcome.kind === 'failed') : trials
  const used = new Set(catalog.operations.flatMap(({ planned, sources }) => (planned ? [] : sources)))
  const figures = [...figuresNow()].filter(([name, { asked }]) => asked > 0 || used.has(name))
  const fields = figures.flatMap(([name, each]) => fieldRows(catalog, name, each))
  const tables = [
    [['ROUTE', '', ''], ...shown.map(trialRow)],
    [FIGURES, ...figures.map(([name, each]) => figureRow(catalog, name, each))],
    [FIELDS, ...fields],
  ].filter((table) => table.length > 1)
  terminal.out(tables.map((rows) => columnsFor(terminal, rows)).join('\n\n'))
  return trials.some(isBroken) || figures.some(([, { drifted }]) => drifted > 0) ? 1 : 0
}

function trialRow({ path, outcome }: Trial): string[] {
  if (outcome.kind === 'answered') return [path, 'answers', '']
  return [path, isNotServed(outcome.fault) ? 'not served' : 'fails', wordsOf(outcome.fault)]
}

/**
 * Whether a call failed although nothing is broken: the route is planned only, or its source has no credentials here.
 */
function isNotServed(fault: unknown): boolean {
  return fault instanceof Failure && ['not_implemented', 'not_configured'].includes(fault.code)
}

function isBroken({ outcome }: Trial): boolean {
  return outcome.kind === 'failed' && !isNotServed(outcome.fault)
}

function wordsOf(fault: unknown): string {
  if (fault instanceof Failure) return `${fault.code}: ${fault.detail}`
  if (fault instanceof InvalidParameter) return `${fault.parameter}: ${fault.sentence}`
  return fault instanceof Error ? fault.name : 'unknown fault'
}

const FIGURES = ['SOURCE', 'ASKED', 'FAILED', 'OTHER FORM', 'SKIPPED', 'RESALE']
const FIELDS = ['SOURCE', 'FIELD NOT AS EXPECTED', 'TIMES']

function figureRow({ sources }: Catalog, name: string, figures: SourceFigures): string[] {
  const { asked, failed, drifted, skipped } = figures
  return [
    sources[name]?.title ?? name,
    String(asked),
    String(failed),
    String(drifted),
    String(skipped),
    sources[name]?.resale ?? '-',
  ]
}

function fieldRows({ sources }: Catalog, name: string, { fields }: SourceFigures): string[][] {
  return Array.from(fields, ([field, count]) => [sources[name]?.title ?? name, field, String(count)])
}
