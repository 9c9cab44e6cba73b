import type { JsonObject } from '../../json.ts'
import { at, listAt, pathOf, spellAvailable, textAt } from './spelling.ts'
import { claimOf, type Claim, type Testimony } from './testimony.ts'

/** How the description of a skill ends that is called over HTTP; what the catalog wrote stands before it. */
const CALL =
  /(?:^| )(?:Price: (\d+\.\d+) USD per call|Free)\.(?: Charged first\.)? GET (\S+)(?: or MCP tool \S+ at \S+)?$/

/** What the skills of the agent card say; one that cannot be used now names no route. */
export function agentCardTestimony(document: string, card: JsonObject): Testimony {
  const claims = listAt(card, 'skills').flatMap((skill): [string, Claim][] => {
    const [, price = 'free', url] = CALL.exec(textAt(skill, 'description') ?? '') ?? []
    if (url === undefined) return []
    const available = spellAvailable(at(skill, 'available') !== false)
    return [
      [pathOf(url), claimOf(['price', price], ['skill', textAt(skill, 'id')], ['available', available])],
    ]
  })
  return { document, covers: 'skills now', claims: new Map(claims) }
}
