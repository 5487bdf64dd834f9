"""The addresses of the API, all below `/api/v1/`. The rest of them is 404, as a problem.

A resource has its routes in `V1`. Names are those of operations in the document.
"""

from typing import Final

from django.urls import URLPattern, include, path, re_path

from mcphost.api.missing import unknown_address
from mcphost.api.resources import primitives, tenants, versions
from mcphost.kinds.primitive_types import PrimitiveType


def _of_type(primitive_type: PrimitiveType) -> list[URLPattern]:
    """The routes of one type of primitives."""
    types = f"{primitive_type.value}s"
    single = f"tenants/<slug:slug>/{types}/<uuid:primitive_id>"
    options = {"primitive_type": primitive_type}
    return [
        path(
            f"tenants/<slug:slug>/{types}",
            primitives.PrimitiveCollection.as_view(),
            options,
            name=types,
        ),
        path(single, primitives.PrimitiveObject.as_view(), options, name=primitive_type.value),
        path(
            f"{single}/publish",
            primitives.PrimitivePublication.as_view(),
            options,
            name=f"{primitive_type.value}_publish",
        ),
        *(
            path(
                f"{single}/{verb.value}",
                primitives.PrimitiveTransition.as_view(),
                {**options, "verb": verb},
                name=f"{primitive_type.value}_{verb.value}",
            )
            for verb in primitives.SERVICES
        ),
        path(
            f"{single}/roll-back",
            versions.RollBack.as_view(),
            options,
            name=f"{primitive_type.value}_roll_back",
        ),
        path(
            f"{single}/versions",
            versions.VersionCollection.as_view(),
            options,
            name=f"{primitive_type.value}_versions",
        ),
        path(
            f"{single}/versions/<uuid:version_id>",
            versions.VersionObject.as_view(),
            options,
            name=f"{primitive_type.value}_version",
        ),
    ]


V1: Final[list[URLPattern]] = [
    path("tenants", tenants.TenantCollection.as_view(), name="tenants"),
    path("tenants/<slug:slug>", tenants.TenantObject.as_view(), name="tenant"),
    path("tenants/<slug:slug>/close", tenants.TenantClosing.as_view(), name="tenant_close"),
    *(pattern for primitive_type in PrimitiveType for pattern in _of_type(primitive_type)),
]

app_name = "api"
urlpatterns = [path("v1/", include(V1)), re_path("", unknown_address, name="unknown")]
