/** Where the texts and pages stand that the world reads. */
export const TEMPLATES = new URL('../../../templates/', import.meta.url)

/** A template’s context: everything it names must be there. */
export interface TemplateContext {
  readonly [name: string]: string | boolean | TemplateContext | readonly string[] | readonly TemplateContext[]
}
