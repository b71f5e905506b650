//! Collects the paths that items write, with the scope in which each stands.

use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Item, Meta, QSelf, Stmt};

use crate::cfg::only_in_tests;
use crate::items;
use crate::read::Reader;
use crate::scope::{Segments, Spaces, Writing};
use crate::tokens;

/// The item that a statement declares.
fn declaration(statement: &Stmt) -> Option<&Item> {
    match statement {
        Stmt::Item(item) => Some(item),
        _ => None,
    }
}

fn mention_names(reader: &mut Reader, path: &syn::Path, count: usize, spaces: Spaces) {
    let names: Vec<String> = path
        .segments
        .iter()
        .take(count)
        .map(|s| items::name(&s.ident))
        .collect();
    if let Some(first) = path.segments.first().filter(|_| count > 0) {
        let line = first.ident.span().start().line;
        let path = Segments {
            global: path.leading_colon.is_some(),
            names,
        };
        reader.mention(path, spaces, Writing::Code, line);
    }
}

/// A path with its generic arguments. With a qualified self, `<T as a::Trait>::N`, the path is that of the trait.
fn walk_path(reader: &mut Reader, qself: Option<&QSelf>, path: &syn::Path, spaces: Spaces) {
    match qself {
        Some(qself) => {
            reader.visit_type(&qself.ty);
            mention_names(reader, path, qself.position, Spaces::TYPE);
        }
        None => mention_names(reader, path, path.segments.len(), spaces),
    }
    for segment in &path.segments {
        reader.visit_path_arguments(&segment.arguments);
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            // Read when they were declared.
            Item::Use(_) | Item::Mod(_) | Item::ExternCrate(_) => {}
            Item::Fn(f) => {
                let variables = items::variables(|v| v.visit_item_fn(f));
                self.with_variables(variables, |reader| {
                    reader.with_generics(&f.sig.generics, |reader| visit::visit_item_fn(reader, f));
                });
            }
            Item::Const(_) | Item::Static(_) => {
                let variables = items::variables(|v| v.visit_item(item));
                self.with_variables(variables, |reader| visit::visit_item(reader, item));
            }
            Item::Impl(i) => {
                self.with_generics(&i.generics, |reader| visit::visit_item_impl(reader, i))
            }
            Item::Struct(i) => {
                self.with_generics(&i.generics, |reader| visit::visit_item_struct(reader, i))
            }
            Item::Enum(i) => {
                self.with_generics(&i.generics, |reader| visit::visit_item_enum(reader, i))
            }
            Item::Union(i) => {
                self.with_generics(&i.generics, |reader| visit::visit_item_union(reader, i))
            }
            Item::Type(i) => {
                self.with_generics(&i.generics, |reader| visit::visit_item_type(reader, i))
            }
            Item::Trait(i) => {
                self.with_generics(&i.generics, |reader| visit::visit_item_trait(reader, i))
            }
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        let declared: Vec<&Item> = block
            .stmts
            .iter()
            .filter_map(declaration)
            .filter(|i| !items::left_out(i))
            .collect();
        self.in_block(&declared, |reader| {
            for statement in &block.stmts {
                if !declaration(statement).is_some_and(items::left_out) {
                    reader.visit_stmt(statement);
                }
            }
        });
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes = match item {
            syn::ImplItem::Const(i) => &i.attrs,
            syn::ImplItem::Fn(i) => &i.attrs,
            syn::ImplItem::Type(i) => &i.attrs,
            syn::ImplItem::Macro(i) => &i.attrs,
            _ => return,
        };
        if only_in_tests(attributes) {
            return;
        }
        match item {
            syn::ImplItem::Fn(f) => {
                let variables = items::variables(|v| v.visit_impl_item_fn(f));
                self.with_variables(variables, |reader| {
                    reader.with_generics(&f.sig.generics, |reader| {
                        visit::visit_impl_item_fn(reader, f)
                    });
                });
            }
            item => visit::visit_impl_item(self, item),
        }
    }

    fn visit_trait_item(&mut self, item: &'ast syn::TraitItem) {
        let attributes = match item {
            syn::TraitItem::Const(i) => &i.attrs,
            syn::TraitItem::Fn(i) => &i.attrs,
            syn::TraitItem::Type(i) => &i.attrs,
            syn::TraitItem::Macro(i) => &i.attrs,
            _ => return,
        };
        if only_in_tests(attributes) {
            return;
        }
        match item {
            syn::TraitItem::Fn(f) => {
                let variables = items::variables(|v| v.visit_trait_item_fn(f));
                self.with_variables(variables, |reader| {
                    reader.with_generics(&f.sig.generics, |reader| {
                        visit::visit_trait_item_fn(reader, f)
                    });
                });
            }
            item => visit::visit_trait_item(self, item),
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !only_in_tests(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        if !only_in_tests(&variant.attrs) {
            visit::visit_variant(self, variant);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !only_in_tests(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_stmt_macro(&mut self, statement: &'ast syn::StmtMacro) {
        if !only_in_tests(&statement.attrs) {
            visit::visit_stmt_macro(self, statement);
        }
    }

    fn visit_field_value(&mut self, value: &'ast syn::FieldValue) {
        if !only_in_tests(&value.attrs) {
            visit::visit_field_value(self, value);
        }
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if !only_in_tests(&arm.attrs) {
            visit::visit_arm(self, arm);
        }
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        match expression {
            Expr::Block(e) if only_in_tests(&e.attrs) => {}
            _ => visit::visit_expr(self, expression),
        }
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        walk_path(self, path.qself.as_ref(), &path.path, Spaces::VALUE);
    }

    fn visit_type_path(&mut self, path: &'ast syn::TypePath) {
        walk_path(self, path.qself.as_ref(), &path.path, Spaces::TYPE);
    }

    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        // A capital is a constant or a constructor; `items::variables` has the others.
        if pattern.subpat.is_none() && items::names_constant(&pattern.ident) {
            let path = Segments {
                global: false,
                names: vec![items::name(&pattern.ident)],
            };
            self.mention(
                path,
                Spaces::VALUE,
                Writing::Code,
                pattern.ident.span().start().line,
            );
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_pat(&mut self, pattern: &'ast syn::Pat) {
        match pattern {
            syn::Pat::TupleStruct(p) => {
                walk_path(self, p.qself.as_ref(), &p.path, Spaces::VALUE);
                p.elems.iter().for_each(|element| self.visit_pat(element));
            }
            syn::Pat::Struct(p) => {
                walk_path(self, p.qself.as_ref(), &p.path, Spaces::TYPE);
                p.fields.iter().for_each(|field| self.visit_pat(&field.pat));
            }
            _ => visit::visit_pat(self, pattern),
        }
    }

    fn visit_expr_struct(&mut self, expression: &'ast syn::ExprStruct) {
        walk_path(
            self,
            expression.qself.as_ref(),
            &expression.path,
            Spaces::TYPE,
        );
        expression
            .fields
            .iter()
            .for_each(|field| self.visit_field_value(field));
        if let Some(rest) = &expression.rest {
            self.visit_expr(rest);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        walk_path(self, None, path, Spaces::TYPE);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        mention_names(self, &call.path, call.path.segments.len(), Spaces::MACRO);
        for found in tokens::paths(call.tokens.clone()) {
            self.mention(found.path, Spaces::ALL, Writing::Tokens, found.line);
        }
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let Meta::List(list) = &attribute.meta else {
            return;
        };
        if ["doc", "cfg", "cfg_attr", "allow", "expect", "warn", "deny"]
            .iter()
            .any(|n| list.path.is_ident(n))
        {
            return;
        }
        for found in tokens::attribute_paths(list.tokens.clone()) {
            self.mention(
                found.path,
                Spaces::TYPE.or(Spaces::VALUE),
                Writing::Tokens,
                found.line,
            );
        }
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}
