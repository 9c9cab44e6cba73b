import { NONE, pathOf, spellParameter, spellParameters } from './spelling.ts'
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
            ['parameters', parameters ?? NONE],
            ['sample', previewIn(rest, path)],
            // What cannot be called now is not in it.
            ['available', 'yes'],
          ),
        ],
      ]
    },
  )
  return { document, covers: 'sold now', claims: new Map(claims) }
}

function previewIn(rest: string, path: string): string {
  const link = / \[Preview\]\((\S+?)\)/.exec(rest)?.[1]
  if (link !== undefined) return pathOf(link)
  return rest.endsWith(' Preview.') ? path.replace(/^\/paid\//, '/sample/') : NONE
}

/** What the long guide says, a chapter each. */
export function llmsFullTestimony(document: string, text: string): Testimony {
  const claims = chaptersOf(text).flatMap((chapter): [string, Claim][] => {
    const [, path, price = 'free'] = /^GET (\S+) \((?:\$(\d+\.\d+)|free)\)$/m.exec(chapter) ?? []
    const sample = /^Free preview: (\S+)$/m.exec(chapter)?.[1] ?? NONE
    return path === undefined
      ? []
      : [[path, claimOf(['price', price], ['sample', sample], ['available', 'yes'])]]
  })
  return { document, covers: 'sold now', claims: new Map(claims) }
}

const ROW = /^\| `([^`]+)` \| [^|]* \| (yes|no) \| (?:`([^`]*)`)? *\|/gm

/** What the documentation says in Markdown. */
export function manualTestimony(document: string, text: string): Testimony {
  const claims = chaptersOf(text).flatMap((chapter): [string, Claim][] => {
    const [, path, price] = /^GET `(\S+)`: (?:(\d+\.\d+) USD|free)$/m.exec(chapter) ?? []
    const [own = '', preview] = chapter.split(/^Free preview /m)
    const parameters = [...own.matchAll(ROW)].map(([, name = '', required, value]) =>
      spellParameter(name, required === 'yes', value),
    )
    const sample = /^`(\S+)`/.exec(preview ?? '')?.[1] ?? NONE
    if (path === undefined) return []
    return [
      [
        path,
        claimOf(['price', price ?? 'free'], ['parameters', spellParameters(parameters)], ['sample', sample]),
      ],
    ]
  })
  return { document, covers: 'sold', claims: new Map(claims) }
}

function chaptersOf(text: string): string[] {
  return text.split(/^### /m)
}

const ARTICLE =
  /<a href="#[^"]*">GET ([^<\s]+)<\/a> <span class="price">(?:(\d+\.\d+) USD|free)<\/span>(.*?)<\/article>/gs

/** What the documentation says as a page. */
export function pageTestimony(document: string, html: string): Testimony {
  const claims = [...html.matchAll(ARTICLE)].map(
    ([, path = '', price = 'free', rest = '']): [string, Claim] => {
      const sample = /Free preview: <a [^>]*><code>GET ([^<]+)<\/code>/.exec(rest)?.[1] ?? NONE
      return [path, claimOf(['price', price], ['sample', sample])]
    },
  )
  return { document, covers: 'sold', claims: new Map(claims) }
}
