import { compilePage } from '../engine/documents/page-frame.ts'
import type { TemplateContext } from '../engine/documents/template.ts'
import type { CallFeed } from './call-feed.ts'
import type { ConsoleSources } from './sources.ts'

/** What a view is shown for. */
export interface ViewRequest {
  readonly sources: ConsoleSources
  readonly feed: CallFeed
  readonly query: URLSearchParams
  /** What follows the path of the view, such as the id of a payment. */
  readonly rest: string
}

/** What the server sends for a view. */
export type ViewAnswer =
  | { readonly kind: 'page'; readonly title: string; readonly context: TemplateContext }
  | { readonly kind: 'missing'; readonly what: string }
  | { readonly kind: 'elsewhere'; readonly path: string }
  | { readonly kind: 'file'; readonly name: string; readonly text: string }

/** One page of the console. */
export interface View {
  readonly path: string
  /** In the navigation, and as the heading. */
  readonly title: string
  readonly print: (context: TemplateContext) => string
  readonly show: (request: ViewRequest) => Promise<ViewAnswer>
}

/** A view with the template of its name. */
export function defineView(name: string, title: string, show: View['show']): View {
  return {
    path: name === 'now' ? '/' : `/${name}`,
    title,
    print: compilePage(`console/${name}.html.hbs`),
    show,
  }
}

export function page(title: string, context: TemplateContext): ViewAnswer {
  return { kind: 'page', title, context }
}
