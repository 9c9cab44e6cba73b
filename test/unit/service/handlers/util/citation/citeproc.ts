import { readFileSync } from 'node:fs'
import t from 'tap'
import { references } from '../../../../../../src/service/handlers/util/citation/styles.ts'
import type { Message } from '../../../../../../src/service/sources/works/crossref-message.ts'
import { readMessage } from '../../../../../../src/service/sources/works/read-message.ts'

type Style = keyof ReturnType<typeof references>

interface Cited {
  readonly message: Message
  /** What citeproc prints from the CSL-JSON that is sold with the reference. */
  readonly expected: Readonly<Record<Style, string>>
  /** Why a style differs on purpose. */
  readonly differs?: Readonly<Partial<Record<Style, string>>>
}

const { works }: { works: readonly Cited[] } = JSON.parse(
  readFileSync(new URL('../../../../../fixtures/citations/works.json', import.meta.url), 'utf8'),
)

t.test('cites 60 works of 12 types as citeproc does with the current styles', async (t) => {
  t.equal(works.length, 60)
  t.equal(new Set(works.map(({ message }) => message.type)).size, 12)
  for (const { message, expected, differs = {} } of works) {
    for (const [style, text] of Object.entries(references(readMessage(message)))) {
      const name = style as Style
      if (differs[name] === undefined) t.equal(text, expected[name], `${name} of ${message.DOI}`)
      else t.not(text, expected[name], `${name} of ${message.DOI}: ${differs[name]}`)
    }
  }
})
