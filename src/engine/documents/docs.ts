import { manualOf } from './manual.ts'
import { definePage, frameOf, readPage } from './page.ts'

const print = readPage('docs.html.hbs')

/** The manual as a page. */
export const docs = definePage('docs', (catalog, facts) =>
  print({ page: frameOf(catalog, facts, 'docs'), ...manualOf(catalog, facts) }),
)
