import ts from 'typescript'

/** A place in a source file, and what it may be changed to. */
export interface Site {
  readonly start: number
  readonly end: number
  readonly text: string
  readonly changed: string
  /** From 1. */
  readonly line: number
}

const OTHERS: ReadonlyMap<ts.SyntaxKind, string> = new Map([
  [ts.SyntaxKind.EqualsEqualsEqualsToken, '!=='],
  [ts.SyntaxKind.ExclamationEqualsEqualsToken, '==='],
  [ts.SyntaxKind.LessThanToken, '<='],
  [ts.SyntaxKind.LessThanEqualsToken, '<'],
  [ts.SyntaxKind.GreaterThanToken, '>='],
  [ts.SyntaxKind.GreaterThanEqualsToken, '>'],
  [ts.SyntaxKind.AmpersandAmpersandToken, '||'],
  [ts.SyntaxKind.BarBarToken, '&&'],
  [ts.SyntaxKind.PlusToken, '-'],
  [ts.SyntaxKind.MinusToken, '+'],
])

/** Every change of a source file: another operator, a condition turned round, the other truth, a call left out. */
export function sitesOf(name: string, source: string): readonly Site[] {
  const file = ts.createSourceFile(name, source, ts.ScriptTarget.Latest, true)
  const sites: Site[] = []
  const add = (node: ts.Node, changed: string): void => {
    const [start, end] = [node.getStart(file), node.getEnd()]
    const line = file.getLineAndCharacterOfPosition(start).line + 1
    sites.push({ start, end, text: source.slice(start, end), changed, line })
  }
  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isInterfaceDeclaration(node)) return
    if (ts.isBinaryExpression(node)) {
      const other = OTHERS.get(node.operatorToken.kind)
      // Texts are put together with the same sign, and cannot be subtracted.
      const isText = ts.isStringLiteralLike(node.left) || ts.isStringLiteralLike(node.right)
      if (other !== undefined && !isText) add(node.operatorToken, other)
    }
    if (ts.isIfStatement(node)) add(node.expression, `!(${node.expression.getText(file)})`)
    if (node.kind === ts.SyntaxKind.TrueKeyword) add(node, 'false')
    if (node.kind === ts.SyntaxKind.FalseKeyword) add(node, 'true')
    if (ts.isExpressionStatement(node) && isCall(node.expression)) add(node, ';')
    ts.forEachChild(node, visit)
  }
  visit(file)
  return sites
}

function isCall(expression: ts.Expression): boolean {
  return ts.isCallExpression(ts.isAwaitExpression(expression) ? expression.expression : expression)
}
