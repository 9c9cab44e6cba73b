import t from 'tap'
import { rankMatches } from '../../../../../src/service/handlers/game/match.ts'
import type { Game } from '../../../../../src/service/sources/igdb/shapes.ts'

const PORTAL: Game = { id: 71, name: 'Portal', slug: 'portal', game_type: { id: 0, type: 'Main Game' } }
const PORTAL_2: Game = { ...PORTAL, id: 72, name: 'Portal 2', slug: 'portal-2', total_rating_count: 3000 }
const DLC: Game = { id: 73, name: 'Portal 2: Peer Review', slug: 'portal-2-peer-review' }
const POKEMON: Game = { id: 74, name: 'Pokémon: Let’s Go', slug: 'pokemon-lets-go' }

function best(name: string, games: readonly Game[]): readonly [number | undefined, number | undefined] {
  const [match] = rankMatches(name, games)
  return [match?.game.id, match?.confidence]
}

t.test('matches the named game among similar names', async (t) => {
  const games = [DLC, PORTAL, PORTAL_2]
  t.strictSame(best('Portal 2', games), [72, 1])
  t.strictSame(best('  portal   2 ', games), [72, 1], 'capitals and spaces make no difference')
  t.strictSame(best('ＰＯＲＴＡＬ', games), [71, 1], 'nor does the width of letters')
  t.strictSame(best('portal-2', games), [72, 0.98], 'nor do hyphens')
  t.strictSame(best('Pokemon Lets Go', [...games, POKEMON]), [74, 0.98], 'nor do accents and apostrophes')
  t.strictSame(best('Portal Peer', games), [73, 0.6], 'the most words in common')
  t.strictSame(best('Half-Life', games), [73, 0], 'what IGDB found by a name of its own')
  t.strictSame(best('🎮', games), [73, 0])
  t.strictSame(best('Portal', []), [undefined, undefined])
})

t.test('prefers the game itself, then the better known, among games of one name', async (t) => {
  const bundle = { ...PORTAL_2, id: 1, game_type: { id: 3, type: 'Bundle' }, total_rating_count: 99_000 }
  const remake = { ...PORTAL_2, id: 2, total_rating_count: 40 }
  const bare = { id: 3, name: 'Portal 2' }
  t.strictSame(
    rankMatches('Portal 2', [bundle, bare, remake, PORTAL_2]).map(({ game }) => game.id),
    [72, 2, 3, 1],
  )
})

const game = (id: number, name: string, others: readonly string[] = []): Game => ({
  id,
  name,
  game_type: { id: 0, type: 'Main Game' },
  alternative_names: others.map((other) => ({ name: other })),
})

t.test(
  'reads Roman numerals and alternative names, and never takes another part of a series for sure',
  async (t) => {
    for (const [asked, listed, meant] of [
      ['dark souls 3', ['Dark Souls III', 'Dark Souls', 'Dark Souls II'], 'Dark Souls III'],
      ['final fantasy 7', ['Final Fantasy', 'Final Fantasy VII', 'Final Fantasy VIII'], 'Final Fantasy VII'],
      ['diablo 4', ['Diablo', 'Diablo II', 'Diablo IV'], 'Diablo IV'],
      [
        'crusader kings 3',
        ['Crusader Kings', 'Crusader Kings II', 'Crusader Kings III'],
        'Crusader Kings III',
      ],
      ['Final Fantasy X', ['Final Fantasy 10 Fan Edition', 'Final Fantasy X'], 'Final Fantasy X'],
    ] as const) {
      const [match] = rankMatches(
        asked,
        listed.map((name, place) => game(place + 1, name)),
      )
      t.equal(match?.game.name, meant, asked)
      t.ok((match?.confidence ?? 0) >= 0.95, asked)
    }
    const civilization = game(2, "Sid Meier's Civilization VI", ['Civilization 6', 'Civ 6'])
    t.equal(rankMatches('civilization 6', [game(1, 'Civilization'), civilization])[0]?.game.id, 2)
    t.match(
      rankMatches('dark souls 3', [game(1, 'Dark Souls')]),
      [{ confidence: 0.43 }],
      'a warning below 0.8',
    )
  },
)

t.test('keeps the order of the source where no candidate fits clearly better', async (t) => {
  const listed = [game(1, 'The Witcher 3: Wild Hunt'), game(2, 'The Witcher Wild Hunt 3 Soundtrack')]
  t.equal(rankMatches('witcher 3 hunt', listed)[0]?.game.id, 1)
})
