import { readTestAddresses } from '../../sandbox/known-keys.ts'
import type { Call } from '../command.ts'
import { loadServed, world } from '../../engine/internal.ts'
import { handlersFor } from '../load.ts'
import { baseUrlOf, paymentConfig } from '../payment-config.ts'
import { previewNetworks } from '../preview.ts'
import { clean, columns } from '../terminal-text.ts'
import { judgeChains } from './chains.ts'
import { judgeFront } from './front.ts'
import { judgeHeaders, judgeOwner, judgeStores, judgeTerms } from './settings.ts'
import type { Verdict } from './verdict.ts'

/** Everything that real money depends on, looked at before the first of it comes; nothing is paid or changed. */
export async function examineProduction(call: Call, url: string | undefined): Promise<number> {
  const { env, flags, terminal } = call
  const file = flags.text('catalog') ?? env.catalog
  const handlers = Object.keys(await handlersFor(call, file))
  const { catalog } = loadServed(file, handlers, baseUrlOf(env))
  const baseUrl = url ?? env.baseUrl
  const config = paymentConfig(call, catalog, undefined)
  const tills = previewNetworks(config, baseUrl ?? 'http://localhost')
  const step = async (name: string, verdicts: Promise<Verdict[]> | Verdict[]): Promise<Verdict[]> => {
    terminal.progress(name)
    return verdicts
  }
  const play = readTestAddresses(env.dataDir)
  const verdicts = [
    ...judgeOwner(env, catalog, config, tills, play),
    ...(await step('networks', judgeChains(catalog, config, tills))),
    ...(await step('stores', judgeStores(env))),
    ...(await step('BASE_URL', judgeFront(catalog, baseUrl))),
    ...judgeHeaders(catalog, baseUrl ?? 'http://localhost'),
    ...judgeTerms(catalog, env.secret),
  ].map((verdict) => ({ ...verdict, says: clean(env.hide(verdict.says)) }))
  terminal.progress('')
  if (flags.given('json'))
    terminal.out(JSON.stringify({ at: new Date(world.now()).toISOString(), verdicts }, null, 2))
  else tell(call, verdicts)
  return verdicts.some(({ level }) => level === 'fails') ? 1 : 0
}

function tell({ terminal }: Call, verdicts: readonly Verdict[]): void {
  const count = (level: Verdict['level']): number => verdicts.filter((each) => each.level === level).length
  terminal.out(columns(verdicts.map(({ level, subject, says }) => [level, subject, says])))
  terminal.out(`\n${count('fails')} failed, ${count('warn')} warnings, ${count('ok')} ok`)
}
