import { ERRORS } from '../errors.ts'
import { definePage, frameOf, readPage } from './page.ts'

const print = readPage('docs-errors.html.hbs')

/** Every failure by its code: where the `type` of a problem leads. */
export const docsErrors = definePage('docs-errors', (catalog, facts) =>
  print({
    page: frameOf(catalog, facts, 'docs-errors'),
    errors: Object.entries(ERRORS).map(([code, { status, title, hint, charged, retryable }]) => ({
      code,
      status: String(status),
      title,
      hint,
      charged: charged.join(', '),
      retryable: retryable ? 'yes' : 'no',
    })),
  }),
)
