/** Games that do not exist, with figures nobody measured: what the stand-in for the game store sells. */
export interface InventedGame {
  /** Far above every id the store has given out, so that no link leads to a real game. */
  readonly appid: number
  readonly name: string
  readonly kind: 'game' | 'hardware'
  /** US cents before discount; 0 is free to play. */
  readonly cents: number
  readonly discountPercent: number
  readonly reviews: number
  readonly percentPositive: number
  readonly released: string
  readonly platforms: readonly ('windows' | 'mac' | 'linux')[]
}

const FIRST_APPID = 4_100_000_010

/** name | US cents | discount | reviews | percent positive | released | platforms (w, m, l) */
const SHELF = `
Gearmoth Hollow            |5999|  0| 48211|91|2026-09-17|w
Saltglass Expedition       |2999| 20| 15630|88|2025-03-06|wl
Emberquill Online          |   0|  0|203377|79|2021-11-02|wml
Nine Lanterns Deep         |1999|  0|  8122|95|2026-10-01|wml
Brasswing Tactics          |3999| 50| 22140|86|2024-05-23|w
Quietus Orchard            |1499|  0|  3391|97|2026-06-11|wm
Driftmarrow                |6999|  0| 61004|72|2026-11-13|w
Tollkeeper of Wexmire      |2499| 33|  9877|84|2023-08-30|wl
Cobble and Comet           | 999|  0| 12055|96|2022-02-14|wml
Ironfern Rally             |4999| 25| 17733|81|2025-10-21|w
Vesper Foundry             |2999|  0| 27418|93|2024-12-05|wml
Hushwater Signal           |1999| 40|  5210|78|2025-01-28|w
Pollen Parliament          |1299|  0|  2204|92|2026-04-16|wm
Skarn Republic             |3499|  0| 19962|74|2026-02-19|wl
Marrowkite Arena           |   0|  0| 88140|68|2023-03-09|w
Lodestone Couriers         |2499| 10| 11086|90|2024-09-12|wml
Ashpetal Requiem           |5999| 60| 73355|89|2022-10-27|w
Tinder and Tide            |1799|  0|  4478|94|2026-07-24|wml
Glasswort Colony           |2999| 75| 31209|83|2020-06-18|wml
Umbral Taxidermist         |1599|  0|  1876|87|2026-08-06|w
Copperhare Derby           |1999| 15|  6650|80|2025-05-15|wm
Wintermote Station         |2799|  0| 14301|91|2025-12-09|wl
Fablewright Academy        |3999|  0| 20517|85|2026-03-26|w
Rustbell Nocturne          |1499| 66|  9043|88|2021-04-22|wml
Seven Knots North          |2299|  0|  3920|93|2026-05-07|wml
Pale Meridian              |4999| 35| 41880|77|2023-11-16|w
Thistlejack Heist          |1999|  0|  7714|82|2026-01-15|w
Oxide Choir                | 899|  0|  2650|98|2025-07-31|wl
Barnacle Bureau            |1199| 20|  3307|90|2024-02-08|wm
Starling Mechanics         |3299|  0| 16025|86|2026-10-22|w
Velvet Quarry              |1699| 45|  5588|76|2022-09-01|wml
Harrowgate Picnic          | 699|  0|  1432|95|2026-09-03|wml
Cinder Almanac             |2599|  0| 10876|89|2025-08-14|w
Moonpatch Logistics        |3499| 30| 18249|92|2023-06-29|wml
Gristle and Grace          |2199|  0|  6021|73|2026-06-25|w
Lanternjaw                 |5499| 10| 39470|87|2025-11-20|wl`

const PLATFORMS = { w: 'windows', m: 'mac', l: 'linux' } as const

export const GAMES: readonly InventedGame[] = SHELF.trim().split('\n').map(read)

/** Charts of the store hold its own devices too. */
export const HARDWARE: InventedGame = {
  appid: FIRST_APPID + 10 * GAMES.length,
  name: 'Quarrel Handheld 2',
  kind: 'hardware',
  cents: 44900,
  discountPercent: 0,
  reviews: 9120,
  percentPositive: 88,
  released: '2026-02-03',
  platforms: ['linux'],
}

/** The ids that examples in the catalog name answer too, so that they can be tried here: with invented games. */
const EXAMPLES: ReadonlyMap<number, InventedGame | undefined> = new Map([
  [730, GAMES[18]],
  [570, GAMES[6]],
])

/** The game with an id of its own or of an example. */
export function findGame(appid: number): InventedGame | undefined {
  return [...GAMES, HARDWARE].find((game) => game.appid === appid) ?? EXAMPLES.get(appid)
}

function read(line: string, index: number): InventedGame {
  const [name = '', cents, discount, reviews, percent, released = '', platforms = ''] = line
    .split('|')
    .map((cell) => cell.trim())
  return {
    appid: FIRST_APPID + 10 * index,
    name,
    kind: 'game',
    cents: Number(cents),
    discountPercent: Number(discount),
    reviews: Number(reviews),
    percentPositive: Number(percent),
    released,
    platforms: (['w', 'm', 'l'] as const).flatMap((key) => (platforms.includes(key) ? [PLATFORMS[key]] : [])),
  }
}
