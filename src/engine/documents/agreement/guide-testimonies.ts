import { NONE, pathOf, spellParameters } from './spelling.ts'
import { claimOf, type Claim, type Testimony } from './testimony.ts'

const ENTRY = /^- \[[^\]]*\]\((\S+?)\): (?:\$(\d+\.\d+)|free)\. (.*)$/gm

/** What the guide for language models says: what is sold now, a line each. Lines on tools of MCP servers are left out. */
export function llmsTestimony(document: string, text: string): Testimony {
  const claims = [...text.matchAll(ENTRY)].flatMap(
    ([, url = '', price = 'free', rest = '']): [string, Claim][] => {
      const path = pathOf(url)
      if (!path.startsWith('/paid/')) return []
      const parameters = / Takes (?!.* Takes )(.+?)\.(?: Preview\.| \[Preview\].*)?$/.exec(rest)?.[1]
      return [
        [
          path,
          claimOf(
            ['price', price],
            ['parameters', parameters ?? spellParameters([])],
            ['sample', sampleIn(rest, path)],
            // What cannot be called now is not in it.
            ['available', 'yes'],
          ),
        ],
      ]
    },
  )
  return { document, covers: 'sold now', claims: new Map(claims) }
}

function sampleIn(rest: string, path: string): string {
  const link = / \[Preview\]\((\S+?)\)/.exec(rest)?.[1]
  if (link !== undefined) return pathOf(link)
  return rest.endsWith(' Preview.') ? path.replace(/^\/paid\//, '/sample/') : NONE
}
