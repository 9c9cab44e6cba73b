import type { Handlers } from './handlers/catalog.ts'
import { deals } from './handlers/gamestore/deals.ts'
import { topSellers } from './handlers/gamestore/top-sellers.ts'
import { ping } from './handlers/ping.ts'
import { extract } from './handlers/util/extract.ts'
import { finid } from './handlers/util/finid.ts'
import { json } from './handlers/util/json.ts'
import { mock } from './handlers/util/mock.ts'
import { siteIntel } from './handlers/util/site-intel.ts'
import { tokencost } from './handlers/util/tokencost.ts'
import { workday } from './handlers/util/workday.ts'
import type { Dns } from './sources/dns.ts'
import type { Egress } from './sources/egress.ts'
import { Gamestore, LIVE_GAMESTORE } from './sources/gamestore.ts'
import { Rdap } from './sources/rdap.ts'
import type { SourceRecords } from './sources/source-record.ts'
import type { World } from './sources/world.ts'

/** The outside of the service: where its sources are, and what they are called in answers. */
export interface Outside {
  readonly world: World
  /** Counts what becomes of the questions to every source. */
  readonly records: SourceRecords
  readonly steamStore: string
  readonly steamApi: string
  /** To addresses that callers name. */
  readonly egress: Egress
  readonly dns: Dns
  /** Address of IANA's list of registries. */
  readonly rdapBootstrap: string
  /** Set when stand-ins answer in the place of the sources. */
  readonly standIn: boolean
}

/** Every handler of the shipped catalog by name; the compiler knows when one is missing. */
export function createHandlers(outside: Outside): Handlers {
  const { world, records, steamStore, steamApi, egress, dns, rdapBootstrap, standIn } = outside
  const source = standIn ? { source: { name: 'Sandbox stand-in for the game store' } } : {}
  const gamestore = new Gamestore(
    { ...LIVE_GAMESTORE, storeUrl: steamStore, apiUrl: steamApi, ...source },
    world,
    records,
  )
  return {
    'gamestore/deals': deals(gamestore),
    'gamestore/top-sellers': topSellers(gamestore),
    ping,
    'util/extract': extract(egress),
    'util/finid': finid,
    'util/json': json,
    'util/mock': mock,
    'util/site-intel': siteIntel({ egress, dns, rdap: new Rdap(egress, rdapBootstrap) }),
    'util/tokencost': tokencost,
    'util/workday': workday,
  }
}
